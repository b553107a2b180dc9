// The low 32 bits of 64-bit values as values of their own: `add.s64` computes in its low half what `add.s32` of the low
// halves does, and so do all operations of the ring of integers, and, or, xor, selection and joins. Where nobody reads
// the high half any more, the 64-bit computation dies.
#pragma once

#include "ir/core/builder.h"
#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace ptxrewrite::transforms {

// Is the low half of the result made of low halves alone? One of 64 bits, without guard and carry.
bool keeps_low_halves(const ir::Function& function, ir::InstructionId id);

// 64-bit values whose high half something reads. `reads_low_half(instruction)`: it will ask for the low halves of its
// 64-bit operands only.
template <class ReadsLowHalf>
std::set<ir::ValueId> values_read_whole(const ir::Function& function, const ir::ControlFlow& flow,
                                        const ir::DefUse& def_use, ReadsLowHalf&& reads_low_half);

class Twins {
public:
  // `whole`: values that stay as they are; their low halves are cut off.
  Twins(ir::Function& function, const ir::ControlFlow& flow, const ir::DefUse& def_use, std::set<ir::ValueId> whole)
      : function_(function), flow_(flow), def_use_(def_use), whole_(std::move(whole)) {}

  // The low half of an operand of 64 bits, for an instruction that reads it.
  ir::Operand low_half(const ir::Operand& operand);
  // A low half that was computed otherwise.
  void set(ir::ValueId value, ir::ValueId twin) { made_[value] = twin; }

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
