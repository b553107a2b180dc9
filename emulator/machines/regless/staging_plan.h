// The execution plan of RegLess's machine for an annotated kernel: its machine instructions, their regions, and the way
// of their operands from staged registers to lanes.
//
// The machine instructions follow from the text alone: the annotations name the machine and the registers of the text
// that are machine registers. The other registers are not in the unit: an instruction that is absorbed by its readers
// is executed before each reader, from staged values. So values pass from one machine instruction to another through
// the unit, or (predicates, uniform registers) through a separate file.
#pragma once

#include "emulator/core/program.h"
#include "ir/machine/registers/machine_values.h"
#include "ir/machine/registers/regless_mark.h"

#include <memory>
#include <vector>

namespace ptxrewrite::emulator {

// A register of the text that is stored by the machine.
struct StagedValue {
  LaneRef lanes;                   // location of the value while instructions execute
  uint32_t bits = 0;               // 1: a predicate
  std::vector<uint16_t> registers; // of the machine; empty: stored in a separate file,
  uint32_t home = 0;               // at this offset
};

// A step that prepares the operands of an instruction.
struct StagedStep {
  enum class Kind : uint8_t {
    fetch,   // copy value `value` from its storage to its lanes
    execute, // execute micro-operations [first, past) of an instruction absorbed by its readers
    add,     // lanes of `value` = lanes of `source` + `constant`
    save,    // save lanes of `value` in `slot`
    restore, // restore lanes of `value` from `slot`
    zero,    // clear lanes of `value`, which has no writes
  } kind = Kind::fetch;
  uint32_t value = 0;  // index into StagingPlan::values, or for lanes: ir::ValueId of the text
  uint32_t source = 0; //
  uint32_t slot = 0;
  uint32_t first = 0, past = 0;
  int64_t constant = 0;
};

enum class StagedLatency : uint8_t { arithmetic, special, shared, memory };

struct StagedInstruction {
  ir::InstructionId id;
  bool is_issued = false;   // false: nothing is executed at its position,
  bool is_free = false;     // unless this is set: no machine instruction, its results are in the separate file
  bool ends = false;        // it ends all lanes that execute it
  bool is_executed = false; // by the emulator; an issued constant need not be executed
  uint32_t weight = 0;      // machine instructions
  StagedLatency latency = StagedLatency::arithmetic;
  std::vector<StagedStep> steps;
  std::vector<uint32_t> writes;  // values
  ir::RegisterSet read, written; // machine registers
  ir::RegisterSet updated;       // of the written ones: those with old values that inactive lanes may need
  uint32_t region = UINT32_MAX;
  uint32_t place = 0; // position in the region
  ir::RegisterSet erase, evict;
  ir::RegisterSet needed_elsewhere; // for an exit: registers needed by lanes on other paths
};

struct StagedRegion {
  ir::RegLessMark mark;
  uint32_t weight = 0;
  uint32_t instructions = 0;  // number of instructions in the region
  uint32_t metadata = 0;      // instructions that carry its annotations (§5.4)
  ir::RegisterSet needed;     // live at its start in any lane
  bool gathers_lanes = false; // has instructions that all lanes execute together, from whichever path
};

// The instruction that a micro-operation of the kernel belongs to.
struct StagedPlace {
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t instruction = none; // index into `instructions`, at its first micro-operation
  uint32_t past = 0;           // code index after its last one
};

class StagingPlan {
public:
  // Returns an error if annotations are missing, unreadable or contradict the kernel, or if it cannot be staged.
  static Result<std::unique_ptr<StagingPlan>> make(KernelImage& image);

  const DecodedFunction& entry() const { return *entry_; }
  const StagedPlace& place(uint32_t code_index) const { return places_[code_index]; }
  const StagedInstruction& instruction(uint32_t index) const { return instructions_[index]; }
  const StagedRegion& region(uint32_t index) const { return regions_[index]; }
  uint32_t region_count() const { return static_cast<uint32_t>(regions_.size()); }
  const StagedValue& value(uint32_t index) const { return values_[index]; }
  // The lanes of a register of the text, for `add`, `save` and `restore`.
  LaneRef lanes(uint32_t text_value) const { return entry_->registers[text_value]; }
  uint32_t bits(uint32_t text_value) const;
  uint32_t values() const { return static_cast<uint32_t>(values_.size()); }
  uint32_t home_bytes() const { return home_bytes_; }
  uint32_t slots() const { return slots_; }
  uint32_t registers() const { return registers_; } // the highest register number plus one
  // The entries of one bank that a unit needs for the largest region, in any rotation.
  uint32_t largest_bank() const;

private:
  friend class StagingPlanner;
  const DecodedFunction* entry_ = nullptr;
  std::vector<StagedPlace> places_; // by code index
  std::vector<StagedInstruction> instructions_;
  std::vector<StagedRegion> regions_;
  std::vector<StagedValue> values_;
  uint32_t home_bytes_ = 0, slots_ = 0, registers_ = 0;
};

// The entries of an SM's units needed for the largest region of the module's annotations.
uint32_t least_staging_entries(const ir::Module& module);

} // namespace ptxrewrite::emulator
