// The low 32 bits of 64-bit values as separate values: the low half of `add.s64` is the `add.s32` of the low halves,
// and the same holds for all ring operations on integers, bitwise operations, selection and joins. If the high half has
// no readers left, the 64-bit computation becomes dead.
#pragma once

#include "ir/core/builder.h"
#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace ptxrewrite::transforms {

// Does the low half of the 64-bit result depend only on low halves? False with a guard or carry.
bool keeps_low_halves(const ir::Function& function, ir::InstructionId id);

// 64-bit values whose high half is read. `reads_low_half(instruction)`: it will read only the low halves of its 64-bit
// operands.
template <class ReadsLowHalf>
std::set<ir::ValueId> values_read_whole(const ir::Function& function, const ir::ControlFlow& flow,
                                        const ir::DefUse& def_use, ReadsLowHalf&& reads_low_half);

class Twins {
public:
  // `whole`: values that stay 64-bit; their low halves are extracted.
  Twins(ir::Function& function, const ir::ControlFlow& flow, const ir::DefUse& def_use, std::set<ir::ValueId> whole)
      : function_(function), flow_(flow), def_use_(def_use), whole_(std::move(whole)) {}

  // The low half of a 64-bit operand, for an instruction that reads it.
  ir::Operand low_half(const ir::Operand& operand);
  // Registers a low half that was computed in another way.
  void set(ir::ValueId value, ir::ValueId twin) { made_[value] = twin; }
  // Truncations of values that have a low half read it instead: the kernel's own `cvt.u32.u64` would keep the 64-bit
  // computation alive.
  void replace_truncations();

private:
  ir::ValueId make(ir::ValueId value);
  ir::ValueId make_parameter(ir::ValueId value, const ir::DefinitionSite& site);
  ir::ValueId make_instruction(ir::ValueId value, ir::InstructionId id);
  ir::ValueId cut(ir::ValueId value);

  ir::Function& function_;
  const ir::ControlFlow& flow_;
  const ir::DefUse& def_use_;
  std::set<ir::ValueId> whole_;
  std::map<ir::ValueId, ir::ValueId> made_;
  unsigned depth_ = 0;
};

// --- implementation ---

template <class ReadsLowHalf>
std::set<ir::ValueId> values_read_whole(const ir::Function& function, const ir::ControlFlow& flow,
                                        const ir::DefUse& def_use, ReadsLowHalf&& reads_low_half) {
  std::set<ir::ValueId> whole;
  std::vector<ir::ValueId> work;
  auto add = [&](ir::ValueId value) {
    if (ir::bit_width(function.values[value].type) == 64 && whole.insert(value).second) work.push_back(value);
  };
  for (ir::BlockId block : flow.reverse_postorder())
    for (ir::InstructionId id : function.instructions_in(block))
      if (!reads_low_half(id) && !keeps_low_halves(function, id)) ir::for_each_use(function, id, add);
  while (!work.empty()) {
    const ir::ValueId value = work.back();
    work.pop_back();
    const ir::DefinitionSite& site = def_use.definition(value);
    if (site.is_parameter()) {
      for (ir::EdgeId edge : flow.predecessors(site.block))
        add(function.arguments(edge)[site.parameter]);
    } else if (site.instruction && !reads_low_half(site.instruction) && keeps_low_halves(function, site.instruction)) {
      ir::for_each_use(function, site.instruction, add);
    }
  }
  return whole;
}

} // namespace ptxrewrite::transforms
