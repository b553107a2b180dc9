// A kernel as the model believes an assembler makes it: for each instruction of PTX the machine instructions that stand
// for it, their unit and latency, and what became of it. Counts are those of `score`: they come from the same lowering.
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
  ir::InstructionId instruction; // of the function; beyond its instructions where a preparing step made it
  uint32_t line = 0;             // of the source, 1-based; 0 where the assembler makes an instruction of its own
  std::string ptx;               // the instruction's text, or a label with its colon
  bool is_label = false;
  uint32_t instructions = 0;        // of the machine, on either datapath
  uint32_t uniform = 0;             // of them, on the uniform datapath
  std::vector<std::string> machine; // names in order of issue, as far as they are known; fewer than `instructions`
  std::string_view pipe;            // empty: no instruction
  std::optional<double> latency;    // clocks until a reader of the result may issue; of loads, where they hit in L1
  std::vector<std::string> remarks; // in the order in which the lowering decided
  std::vector<std::string> sass;    // what the assembler made of the line, where it was disassembled (sass_lines.h)
};

struct MachineListing {
  std::string function;
  bool is_entry = false;
  std::vector<MachineListingLine> lines;
  // What stands in the code beside the lines: the stack pointer and what is read from constant memory at the entry,
  // subroutines of divisions and of called functions, and further copies of unrolled loops.
  uint32_t prologue = 0, prologue_uniform = 0, subroutines = 0, copies = 0;
  uint32_t instructions = 0, uniform = 0; // all there is, and what of it the uniform datapath issues
  uint32_t registers = 0, predicates = 0;
  // Spills: instructions that write and read local memory, included in the costs of the lines beside them; 0 if all
  // values fit into registers.
  uint32_t spill_stores = 0, spill_loads = 0;
  uint32_t registers_wanting = 0;          // registers above the limit that spilling could not remove
  std::optional<ir::MachineFigures> ptxas; // what it made of the same kernel
  bool has_sass = false;
  std::vector<std::string> sass_elsewhere; // of no line above: at the entry, and in subroutines
};

// For the assembler of `compute_capability`, with units and latencies of `machine`. The function may be in either
// state; in SSA form, if it can be brought there, the listing is sharper.
MachineListing machine_listing(const ir::Function& function, const ir::Machine& machine, uint32_t compute_capability);

} // namespace ptxrewrite::evaluate
