// Computes the highest sum of widths of live values, see registers.h.
#include "ir/machine/registers/registers.h"

#include "ir/flow/liveness.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/registers/schedule.h"
#include "ir/machine/registers/sinking.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// The live values during a walk of a block from its end to its start.
class Pressure {
public:
  Pressure(const Function& function, const Lowering& lowering)
      : function_(function), lowering_(lowering), live_(function.values.size()) {}

  void start(const std::vector<ValueId>& live_out) {
    std::fill(live_.begin(), live_.end(), false);
    now_ = {};
    for (ValueId value : live_out)
      add(value);
  }
  void add(ValueId value) {
    if (live_[value.index()] || function_.values[value].is_undefined) return;
    live_[value.index()] = true;
    change(value, +1);
    worst.registers = std::max(worst.registers, now_.registers);
    worst.predicates = std::max(worst.predicates, now_.predicates);
  }
  void remove(ValueId value) {
    if (!live_[value.index()]) return;
    live_[value.index()] = false;
    change(value, -1);
  }

  RegisterNeed worst;

private:
  void change(ValueId id, int sign) {
    uint32_t& count = function_.values[id].type == ScalarType::pred ? now_.predicates : now_.registers;
    uint32_t units = function_.values[id].type == ScalarType::pred ? 1 : lowering_.register_units(id);
    count += sign > 0 ? units : 0 - units;
  }

  const Function& function_;
  const Lowering& lowering_;
  std::vector<bool> live_;
  RegisterNeed now_;
};

// The order in which an assembler issues a block: loads and the instructions that they depend on first, as far as
// stores and barriers permit, so that their latencies overlap.
std::vector<InstructionId> issue_order(const Function& function, BlockId block) {
  std::vector<InstructionId> order, region;
  std::vector<bool> feeds(function.values.size());
  auto flush = [&] {
    std::vector<bool> early(region.size());
    for (size_t i = region.size(); i-- > 0;) {
      const Instruction& instruction = function.instructions[region[i]];
      if (instruction.kind != InstructionKind::real) continue;
      const Form& form = function.form_of(region[i]);
      early[i] = form.kind == InstructionClass::load || form.kind == InstructionClass::texture;
      for_each_definition(function, region[i], [&](ValueId value) { early[i] = early[i] || feeds[value.index()]; });
      if (early[i]) for_each_use(function, region[i], [&](ValueId value) { feeds[value.index()] = true; });
    }
    for (bool first : {true, false})
      for (size_t i = 0; i < region.size(); ++i)
        if (early[i] == first) order.push_back(region[i]);
    for (InstructionId id : region)
      for_each_use(function, id, [&](ValueId value) { feeds[value.index()] = false; });
    region.clear();
  };
  for (InstructionId id : function.instructions_in(block)) {
    const Instruction& instruction = function.instructions[id];
    bool fence = instruction.kind != InstructionKind::real;
    if (!fence) {
      const Form& form = function.form_of(id);
      fence =
          form.effects.writes_memory || form.effects.atomic || form.effects.barrier || form.effects.transfers_control();
    }
    region.push_back(id);
    if (fence) flush();
  }
  flush();
  return order;
}

// Number of registers for the results of the block's loads.
uint32_t loaded_units(const Function& function, const Lowering& lowering, BlockId block) {
  uint32_t units = 0;
  for (InstructionId id : function.instructions_in(block))
    if (function.instructions[id].kind == InstructionKind::real && function.form_of(id).kind == InstructionClass::load)
      for_each_definition(function, id, [&](ValueId value) { units += lowering.register_units(value); });
  return units;
}

// The highest pressure in a block, given the order of its instructions.
RegisterNeed need_of(const Function& function, const Lowering& lowering, const std::vector<ValueId>& live_out,
                     const std::vector<InstructionId>& order) {
  Pressure pressure(function, lowering);
  pressure.start(live_out);
  for (size_t i = order.size(); i-- > 0;) {
    // A definition occupies its register even if unread; a guarded one keeps the old contents.
    for_each_definition(function, order[i], [&](ValueId value) { pressure.add(value); });
    if (function.is_ssa || !function.instructions[order[i]].guard)
      for_each_definition(function, order[i], [&](ValueId value) { pressure.remove(value); });
    for_each_use(function, order[i], [&](ValueId value) { pressure.add(value); });
  }
  return pressure.worst;
}

// The maximum number live if all loads of a block that can overlap are issued together; 0 if unknown.
uint32_t live_with_early_loads(const Function& function, uint32_t compute_capability) {
  const bool of_hardware_form = std::ranges::any_of(
      function.values, [](const Value& value) { return value.register_class != RegisterClass::general; });
  if (of_hardware_form) return 0;
  Function copy = function;
  if (!copy.is_ssa && !construct_ssa(copy).ok()) return 0;
  schedule(copy, {.goal = ScheduleGoal::early_loads, .compute_capability = compute_capability, .live_limit = 255});
  return Scheduler(copy, {.compute_capability = compute_capability}).most_live();
}

RegisterNeed need_as_ordered(const Function& function, uint32_t compute_capability) {
  const auto limit = [&](Heuristic which) { return heuristic(compute_capability, which); };
  const uint32_t free_registers = limit(Heuristic::overlap_registers);
  Lowering lowering = lower_as_written(function, compute_capability);
  const uint32_t fixed = limit(Heuristic::reserved_registers) +
                         (lowering.subroutine_instructions() > 0 ? limit(Heuristic::subroutine_registers) : 0);
  ControlFlow flow(function);
  Liveness liveness(function, flow);
  RegisterNeed worst;
  for (BlockId block : function.layout) {
    std::vector<InstructionId> text_order;
    for (InstructionId id : function.instructions_in(block))
      text_order.push_back(id);
    RegisterNeed least = need_of(function, lowering, liveness.live_out(block), text_order);
    RegisterNeed eager = need_of(function, lowering, liveness.live_out(block), issue_order(function, block));
    uint32_t copies = lowering.copies_of(block);
    eager.registers += (copies - 1) * loaded_units(function, lowering, block);
    uint32_t needed = std::max(least.registers + fixed, std::min(eager.registers + fixed, free_registers));
    worst.registers = std::max(worst.registers, needed);
    worst.predicates = std::max(worst.predicates, least.predicates);
  }
  if (worst.registers < free_registers) // early loads raise it to no more than that
    worst.registers = std::max(worst.registers,
                               std::min(live_with_early_loads(function, compute_capability) + fixed, free_registers));
  const uint32_t most = most_registers(compute_capability);
  worst.beyond = worst.registers > most ? worst.registers - most : 0;
  worst.registers = std::min(worst.registers, most);
  return worst;
}

} // namespace

RegisterNeed register_need(const Function& function, uint32_t compute_capability) {
  const RegisterNeed need = need_as_ordered(function, compute_capability);
  if (need.registers <= heuristic(compute_capability, Heuristic::overlap_registers) || !function.is_ssa) return need;
  Function sunk = function;
  if (!sink_computations(sunk)) return need;
  const RegisterNeed less = need_as_ordered(sunk, compute_capability);
  return less.registers + less.beyond < need.registers + need.beyond ? less : need;
}

} // namespace ptxrewrite::ir
