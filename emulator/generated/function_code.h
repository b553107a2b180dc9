// The generator's view of a function's micro-operations: the operation of each, and the registers that are live after
// it.
#pragma once

#include "emulator/core/program.h"
#include "emulator/generated/context.h"
#include "emulator/generated/rows.h"
#include "emulator/special/known_handlers.h"
#include "ir/flow/cfg.h"
#include "ir/flow/liveness.h"

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator::generated {

enum class OpKind : uint8_t {
  row,        // built by its recipe, or called
  lane_sum,   // source[0] + source[1] + immediate
  shift,      // source[0] + immediate
  insertion,  // of a part into a register
  extraction, // of a part of a register
  load,
  store,
  fixed_load,
  call,       // the handler is called; the only registers that it accesses are its OpUses
  collective, // likewise, if all live lanes of the warp are here
  branch,
  stop, // continues in the interpreter
};

struct OpInfo {
  OpKind kind = OpKind::stop;
  const Recipe* recipe = nullptr; // of a row
  MemoryHandler memory;
  PartHandler part;
};

// A lane array that an operation reads or writes, and the width of its lanes; 1: a predicate.
struct LaneUse {
  LaneRef lanes;
  unsigned bits = 32;
};
struct OpUses {
  std::vector<LaneUse> sources, destinations;
};

// Observed address patterns of accesses whose first guess was wrong, by micro-operation.
using KnownPlaces = std::map<uint32_t, LanePlaces>;

class FunctionCode {
public:
  FunctionCode(const KernelImage& image, const DecodedFunction& function, Handler hook);

  const KernelImage& image;
  const DecodedFunction& function;

  const MicroOp& op(uint32_t index) const { return function.code[index]; }
  uint32_t index_of(const MicroOp* op) const { return static_cast<uint32_t>(op - function.code.data()); }
  // Does a counting region begin there, whether or not its entry looks for code?
  bool is_region(uint32_t index) const { return op(index).handler == hook_ || is_region_entry_[index]; }
  bool is_meeting(uint32_t index) const { return is_meeting_[index]; }
  OpInfo info(uint32_t index) const;
  OpUses uses(uint32_t index, const OpInfo& info) const;
  // Elements of a vector access: values[i] of the i-th.
  LaneRef element(const MicroOp& op, unsigned i, LaneRef single) const {
    return op.count == 1 ? single : function.lists[op.extra + i];
  }
  // Offsets of the registers that are live before the instruction of this micro-operation.
  const std::vector<uint32_t>& live_at(uint32_t index);
  bool is_register(uint32_t offset) const { return register_offsets_.contains(offset); }
  std::string_view instruction_text(uint32_t index) const;
  // Equal for functions that have the same code, in every process (plan_key.cpp).
  const std::string& identity();
  KnownPlaces known_places;

private:
  const std::vector<uint32_t>& live_before(ir::InstructionId id);
  void add_register(ir::ValueId value, std::vector<uint32_t>& offsets) const;
  void add_results(std::vector<uint32_t>& offsets) const;

  Handler hook_;
  std::string identity_;
  std::vector<bool> is_region_entry_, is_meeting_;
  ir::ControlFlow flow_;
  ir::Liveness liveness_;
  std::set<uint32_t> register_offsets_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> live_; // by instruction
};

// Whether a load from one address can give each lane another value: local memory, which generic addresses reach, too.
bool loads_own_memory(const MicroOp& op);

} // namespace ptxrewrite::emulator::generated
