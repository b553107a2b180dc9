// The highest sum of widths of live values, see registers.h.
#include "ir/machine/registers.h"

#include "ir/analysis/liveness.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// What is live, going through a block from its end to its start.
class Pressure {
public:
  explicit Pressure(const Function& function) : function_(function), live_(function.values.size()) {}

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
    const Value& value = function_.values[id];
    if (value.type == ScalarType::pred) {
      now_.predicates += static_cast<uint32_t>(sign);
      return;
    }
    if (value.register_class != RegisterClass::general) return;
    uint32_t units = std::max(1u, (bit_width(value.type) + 31) / 32) * value.vector_width;
    now_.registers += sign > 0 ? units : 0 - units;
  }

  const Function& function_;
  std::vector<bool> live_;
  RegisterNeed now_;
};

} // namespace

RegisterNeed register_need(const Function& function, uint32_t) {
  ControlFlow flow(function);
  Liveness liveness(function, flow);
  Pressure pressure(function);
  for (BlockId block : function.layout) {
    pressure.start(liveness.live_out(block));
    std::vector<InstructionId> order;
    for (InstructionId id : function.instructions_in(block))
      order.push_back(id);
    for (size_t i = order.size(); i-- > 0;) {
      // A definition occupies its register even if nobody reads it; a guarded one keeps what was there before.
      for_each_definition(function, order[i], [&](ValueId value) { pressure.add(value); });
      if (function.is_ssa || !function.instructions[order[i]].guard)
        for_each_definition(function, order[i], [&](ValueId value) { pressure.remove(value); });
      for_each_use(function, order[i], [&](ValueId value) { pressure.add(value); });
    }
  }
  return pressure.worst;
}

} // namespace ptxrewrite::ir
