#include "ir/machine/select/combined_atomics.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"

namespace ptxrewrite::ir {

namespace {

// True if the address of a memory access is the same in all lanes.
bool has_uniform_address(const LoweringContext& context, const UniformValues& uniform, InstructionId id) {
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
    if (!operand->is(OperandKind::address)) continue;
    for (size_t member = 1; member <= operand->group_size(); ++member)
      if (operand[member].is(OperandKind::value) && !uniform.uniform(operand[member].as_value()) &&
          context.source_of(operand[member].as_value()) == ValueSource::computed)
        return false;
    return true;
  }
  return false;
}

void weigh_combined_atomic(LoweringContext& context, const UniformValues& uniform, bool& lane_known, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.kind != InstructionClass::atomic || is_float(form.type()) || bit_width(form.type()) != 32) return;
  const bool adds = form.has(Modifier::add), extreme = form.has(Modifier::min) || form.has(Modifier::max);
  if ((!adds && !extreme) || !has_uniform_address(context, uniform, id)) return;
  const ValueId old = context.result(id);
  const bool used = old && !(context.values.readers(old).empty() && !context.values.merges(old));
  const Operand* given = context.source(id, 1);
  const bool same = !given->is(OperandKind::value) || context.source_of(given->as_value()) != ValueSource::computed ||
                    uniform.uniform(given->as_value());
  if (used && !(adds && same)) return;
  if (!same && !has(context.capability, MachineFact::warp_reductions)) return;
  InstructionCost& at = context.costs[id.index()];
  at.weight = static_cast<uint16_t>(at.weight + heuristic(context.capability, Heuristic::election) +
                                    (used ? heuristic(context.capability, Heuristic::election_rank) : 0) +
                                    (lane_known ? 0 : heuristic(context.capability, Heuristic::election_lane)));
  lane_known = true;
}

} // namespace

void weigh_combined_atomics(LoweringContext& context, const UniformValues& uniform) {
  if (!has(context.capability, MachineFact::combined_atomics)) return;
  bool lane_known = false; // the lane number has been read for an election
  context.for_each_needed([&](InstructionId id) { weigh_combined_atomic(context, uniform, lane_known, id); });
}

} // namespace ptxrewrite::ir
