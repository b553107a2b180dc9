// What RegLess's machine executes of an annotated kernel: its machine instructions, the regions that they stand in, and
// how what they read comes out of staged registers.
//
// Which PTX instructions are machine instructions follows from the text alone: the annotations say for which machine
// and which registers of the text are machine registers. The others are no registers of the unit: an instruction that
// its readers do the work of is executed in front of each reader, from what is staged there. So a value gets from one
// machine instruction to another through the unit, or (predicates, uniform registers) through a file of its own.
#pragma once

#include "emulator/core/program.h"
#include "ir/machine/registers/machine_values.h"
#include "ir/machine/registers/regless_mark.h"

#include <memory>
#include <vector>

namespace ptxrewrite::emulator {

// A register of the text that the machine keeps somewhere.
struct StagedValue {
  LaneRef lanes;                   // where instructions find it while they execute
  uint32_t bits = 0;               // 1: a predicate
  std::vector<uint16_t> registers; // of the machine; empty: in a file of its own,
  uint32_t home = 0;               // at this offset
};

// What is done in front of an instruction so that it finds its operands.
struct StagedStep {
  enum class Kind : uint8_t {
    fetch,   // value `value` from where it is kept to its lanes
    execute, // micro-operations [first, past) of an instruction that readers do the work of
    add,     // lanes of `value` = lanes of `source` + `constant`
    save,    // lanes of `value` aside, `slot`
    restore, // and back
    zero,    // lanes of `value`, which nothing has been written to
  } kind = Kind::fetch;
  uint32_t value = 0;  // index into StagingPlan::values, or of lanes: ir::ValueId of the text
  uint32_t source = 0; //
  uint32_t slot = 0;
  uint32_t first = 0, past = 0;
  int64_t constant = 0;
};

enum class StagedLatency : uint8_t { arithmetic, special, shared, memory };

struct StagedInstruction {
  ir::InstructionId id;
  bool is_issued = false;   // else nothing is done where it stands,
  bool is_free = false;     // but for this one: no machine instruction, and what it gives is kept apart
  bool ends = false;        // all lanes that execute it
  bool is_executed = false; // by the emulator; an issued constant need not be
  uint32_t weight = 0;      // machine instructions
  StagedLatency latency = StagedLatency::arithmetic;
  std::vector<StagedStep> steps;
  std::vector<uint32_t> writes;  // values
  ir::RegisterSet read, written; // machine registers
  ir::RegisterSet updated;       // of those written: lanes that do not take part may need what they hold
  uint32_t region = UINT32_MAX;
  uint32_t place = 0; // among the region's instructions
  ir::RegisterSet erase, evict;
  ir::RegisterSet needed_elsewhere; // where lanes end: by lanes that may have gone another way
};

struct StagedRegion {
  ir::RegLessMark mark;
  uint32_t weight = 0;
  uint32_t instructions = 0;  // that stand in it
  uint32_t metadata = 0;      // instructions that carry its annotations (§5.4)
  ir::RegisterSet needed;     // when it starts, by any lane
  bool gathers_lanes = false; // has instructions that lanes execute together, wherever they come from
};

// What a micro-operation of the kernel belongs to.
struct StagedPlace {
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t instruction = none; // index into `instructions`, where its first micro-operation is
  uint32_t past = 0;           // behind its last one
};

class StagingPlan {
public:
  // Error: no annotations, such as cannot be read or contradict the kernel, or a kernel that is not known how to stage.
  static Result<std::unique_ptr<StagingPlan>> make(KernelImage& image);

  const DecodedFunction& entry() const { return *entry_; }
  const StagedPlace& place(uint32_t code_index) const { return places_[code_index]; }
  const StagedInstruction& instruction(uint32_t index) const { return instructions_[index]; }
  const StagedRegion& region(uint32_t index) const { return regions_[index]; }
  uint32_t region_count() const { return static_cast<uint32_t>(regions_.size()); }
  const StagedValue& value(uint32_t index) const { return values_[index]; }
  // Of a register of the text, for `add`, `save` and `restore`.
  LaneRef lanes(uint32_t text_value) const { return entry_->registers[text_value]; }
  uint32_t bits(uint32_t text_value) const;
  uint32_t values() const { return static_cast<uint32_t>(values_.size()); }
  uint32_t home_bytes() const { return home_bytes_; }
  uint32_t slots() const { return slots_; }
  uint32_t registers() const { return registers_; } // one more than the highest one
  // What a unit must hold for the largest region: entries of one bank, in any rotation.
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

// Entries of an SM's units that hold the largest region of the module's annotations.
uint32_t least_staging_entries(const ir::Module& module);

} // namespace ptxrewrite::emulator
