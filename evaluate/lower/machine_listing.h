// A kernel as the model predicts the assembler's output: for each PTX instruction the machine instructions, their unit
// and latency, and the decisions of the lowering. Counts agree with `score`, which uses the same lowering.
#pragma once

#include "ir/core/module.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/figures/machine.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

struct MachineListingLine {
  ir::InstructionId instruction; // of the function; an ID beyond its instructions if a preparing step created it
  uint32_t line = 0;             // of the source, 1-based; 0 for instructions that the assembler adds
  std::string ptx;               // the instruction's text, or a label with its colon
  bool is_label = false;
  uint32_t instructions = 0;        // machine instructions, on either datapath
  uint32_t uniform = 0;             // those on the uniform datapath
  std::vector<std::string> machine; // mnemonics in issue order, as far as known; may be fewer than `instructions`
  std::string_view pipe;            // empty if there is no machine instruction
  std::optional<double> latency;    // clocks until a reader of the result can issue; for loads that hit in L1
  std::vector<std::string> remarks; // in the order of the lowering's decisions
  std::vector<std::string> sass;    // the assembler's own instructions for the line, if disassembled (sass_lines.h)
};

struct MachineListing {
  std::string function;
  bool is_entry = false;
  std::vector<MachineListingLine> lines;
  // Code besides the lines: the stack pointer and loads from constant memory at the entry, subroutines for divisions
  // and called functions, and additional copies of unrolled loops.
  uint32_t prologue = 0, prologue_uniform = 0, subroutines = 0, copies = 0;
  uint32_t instructions = 0, uniform = 0; // totals; `uniform`: those that the uniform datapath issues
  uint32_t registers = 0, predicates = 0;
  // Spills: instructions that write and read local memory, included in the costs of the adjacent lines; 0 if all values
  // fit into registers.
  uint32_t spill_stores = 0, spill_loads = 0;
  uint32_t registers_wanting = 0;          // registers above the limit that spilling could not remove
  std::optional<ir::MachineFigures> ptxas; // the result of ptxas for the same kernel
  bool has_sass = false;
  std::vector<std::string> sass_elsewhere; // belongs to no line above: at the entry, and in subroutines
};

// For the assembler of `compute_capability`, with units and latencies of `machine`. The function may be in either
// state; the listing is more precise if SSA form can be constructed.
MachineListing machine_listing(const ir::Function& function, const ir::Machine& machine, uint32_t compute_capability);

} // namespace ptxrewrite::evaluate
