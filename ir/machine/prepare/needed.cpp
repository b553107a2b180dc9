#include "ir/machine/prepare/needed.h"

#include <algorithm>

namespace ptxrewrite::ir {

// Everything that an instruction with an effect, or control, depends on.
std::vector<bool> needed_instructions(const Function& function, const ControlFlow& flow) {
  std::vector<bool> needed(function.instructions.size());
  std::vector<std::vector<InstructionId>> writers(function.values.size());
  std::vector<std::vector<ValueId>> arguments(function.values.size()); // of block parameters
  std::vector<InstructionId> work;
  std::vector<bool> value_needed(function.values.size());
  std::vector<ValueId> value_work;
  auto need = [&](InstructionId id) {
    if (needed[id.index()]) return;
    needed[id.index()] = true;
    work.push_back(id);
  };
  for (BlockId block : function.layout) {
    if (!flow.reachable(block)) continue;
    for (EdgeId edge : function.successors(block)) {
      std::span<const ValueId> parameters = function.parameters(function.edges[edge].to);
      std::span<const ValueId> given = function.arguments(edge);
      for (size_t i = 0; i < std::min(parameters.size(), given.size()); ++i)
        arguments[parameters[i].index()].push_back(given[i]);
    }
    for (InstructionId id : function.instructions_in(block)) {
      for_each_definition(function, id, [&](ValueId value) { writers[value.index()].push_back(id); });
      const Form* form = function.instructions[id].kind == InstructionKind::real ? &function.form_of(id) : nullptr;
      bool removable = form && (form->effects.pure() || (form->opcode == Opcode::ld && !form->effects.atomic &&
                                                         !form->effects.volatile_result));
      if (form && !removable) need(id);
    }
  }
  auto need_value = [&](ValueId value) {
    if (value_needed[value.index()]) return;
    value_needed[value.index()] = true;
    value_work.push_back(value);
  };
  while (!work.empty() || !value_work.empty()) {
    if (!value_work.empty()) {
      ValueId value = value_work.back();
      value_work.pop_back();
      for (InstructionId id : writers[value.index()])
        need(id);
      for (ValueId argument : arguments[value.index()])
        need_value(argument);
      continue;
    }
    InstructionId id = work.back();
    work.pop_back();
    for_each_use(function, id, need_value);
  }
  return needed;
}

} // namespace ptxrewrite::ir
