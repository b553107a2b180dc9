#include "ir/edit/fold_control.h"

#include "ir/flow/cfg.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace ptxrewrite::ir {

namespace {

void drop_guard(Function& function, InstructionId id) {
  std::vector<Operand> operands;
  for (const Operand& operand : function.operands_of(id))
    if (!operand.has(OperandFlag::old_value)) operands.push_back(operand);
  function.set_operands(id, operands);
  function.instructions[id].guard = {};
  function.instructions[id].guard_negated = false;
  function.changed();
}

// Its destinations keep their old values. Definitions and old values are in the same order.
void drop_instruction(Function& function, InstructionId id, Replacements& replacements) {
  std::vector<ValueId> definitions, old_values;
  for (const Operand& operand : function.operands_of(id)) {
    if (!operand.is(OperandKind::value)) continue;
    if (operand.is_definition()) definitions.push_back(operand.as_value());
    if (operand.has(OperandFlag::old_value)) old_values.push_back(operand.as_value());
  }
  for (size_t i = 0; i < definitions.size() && i < old_values.size(); ++i)
    replacements[definitions[i]] = old_values[i];
  function.remove(id);
}

void keep_edges(Function& function, BlockId block, bool taken) {
  const std::vector<EdgeId> edges(function.successors(block).begin(), function.successors(block).end());
  if (edges.size() < 2) {
    // A guarded ret or exit: the only edge continues to the next block.
    if (taken) function.set_successors(block, {}, false);
    return;
  }
  const EdgeId kept = taken ? edges.front() : edges.back();
  function.set_successors(block, {&kept, 1}, !taken);
}

bool fold_guard(Function& function, InstructionId id, bool holds, Replacements& replacements) {
  const BlockId block = function.instructions[id].block;
  const Form& form = function.form_of(id);
  if (form.opaque) return false;
  const bool leaves = form.effects.branch || form.effects.terminates;
  const bool last = function.terminator(block) == id;
  // An unconditional exit in mid-block would require removing the rest of the block; keep the guard instead.
  if (leaves && holds && !last) return false;
  if (form.opcode == Opcode::brx && holds) return false;
  if (leaves && last) keep_edges(function, block, holds);
  if (holds)
    drop_guard(function, id);
  else
    drop_instruction(function, id, replacements);
  return true;
}

std::optional<ValueId> only_argument(const Function& function, std::span<const EdgeId> edges, size_t index,
                                     ValueId parameter) {
  std::optional<ValueId> only;
  for (EdgeId edge : edges) {
    const ValueId argument = function.arguments(edge)[index];
    if (argument == parameter) continue;
    if (only && *only != argument) return std::nullopt;
    only = argument;
  }
  return only;
}

} // namespace

bool fold_guards(Function& function, const KnownPredicates& known, Replacements& replacements) {
  bool changed = false;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const Instruction& instruction = function.instructions[id];
      if (instruction.kind != InstructionKind::real || !instruction.guard) continue;
      auto found = known.find(instruction.guard);
      if (found != known.end())
        changed |= fold_guard(function, id, found->second != instruction.guard_negated, replacements);
    }
  return changed;
}

size_t remove_unreachable_blocks(Function& function) {
  const ControlFlow flow(function);
  std::vector<BlockId> dead;
  for (BlockId block : function.layout)
    if (!flow.reachable(block)) dead.push_back(block);
  for (BlockId block : dead)
    function.remove_block(block);
  return dead.size();
}

void find_needless_parameters(const Function& function, Replacements& replacements) {
  const ControlFlow flow(function);
  for (BlockId block : function.layout) {
    const std::span<const ValueId> parameters = function.parameters(block);
    for (size_t i = 0; i < parameters.size(); ++i)
      if (auto only = only_argument(function, flow.predecessors(block), i, parameters[i]))
        replacements.try_emplace(parameters[i], *only);
  }
}

bool remove_needless_jumps(Function& function) {
  bool changed = false;
  for (size_t i = 0; i + 1 < function.layout.size(); ++i) {
    const BlockId block = function.layout[i];
    const InstructionId last = function.terminator(block);
    if (!last || !function.is_opcode(last, Opcode::bra) || function.instructions[last].guard) continue;
    const std::vector<EdgeId> edges(function.successors(block).begin(), function.successors(block).end());
    if (edges.size() != 1 || function.edges[edges[0]].to != function.layout[i + 1]) continue;
    function.remove(last);
    function.set_successors(block, edges, true);
    changed = true;
  }
  return changed;
}

bool replace(Function& function, const Replacements& replacements) {
  if (replacements.empty()) return false;
  bool changed = false;
  auto final_value = [&](ValueId value) {
    // A longer chain than there are replacements is a cycle: parameters that only pass one another on.
    for (size_t steps = 0; steps <= replacements.size(); ++steps) {
      auto found = replacements.find(value);
      if (found == replacements.end()) return value;
      value = found->second;
    }
    return value;
  };
  auto renew = [&](ValueId value) {
    const ValueId next = final_value(value);
    changed |= next != value;
    return next;
  };
  for (BlockId block : function.layout) {
    for (InstructionId id : function.instructions_in(block)) {
      for (Operand& operand : function.operands_of(id))
        if (operand.is(OperandKind::value) && !operand.is_definition()) operand.id = renew(operand.as_value()).index();
      if (ValueId guard = function.instructions[id].guard) function.instructions[id].guard = renew(guard);
    }
    for (EdgeId edge : function.successors(block))
      for (ValueId& argument : function.arguments(edge))
        argument = renew(argument);
  }
  if (changed) function.changed();
  return changed;
}

} // namespace ptxrewrite::ir
