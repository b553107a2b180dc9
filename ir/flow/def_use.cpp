// Two passes over the operands: definitions and the number of uses, then uses.
#include "ir/flow/def_use.h"

#include <cassert>

namespace ptxrewrite::ir {

namespace {

// Calls `visit(value, use)` for every use in layout order.
template <class Visit> void for_each_use_site(const Function& function, Visit&& visit) {
  for (BlockId block : function.layout) {
    for (InstructionId id : function.instructions_in(block)) {
      std::span<const Operand> operands = function.operands_of(id);
      for (uint32_t i = 0; i < operands.size(); ++i)
        if (operands[i].is(OperandKind::value) && !operands[i].is_definition())
          visit(operands[i].as_value(), Use{id, {}, i});
      if (ValueId guard = function.instructions[id].guard) visit(guard, Use{id, {}, Use::guard_index});
    }
    for (EdgeId edge : function.successors(block)) {
      std::span<const ValueId> arguments = function.arguments(edge);
      for (uint32_t i = 0; i < arguments.size(); ++i)
        visit(arguments[i], Use{{}, edge, i});
    }
  }
}

// A register that no path has written yet counts as defined in the entry block.
void place_undefined(const Function& function, std::vector<DefinitionSite>& definitions) {
  if (function.layout.empty()) return;
  for (ValueId value : function.values.ids())
    if (function.values[value].is_undefined) definitions[value.index()].block = function.entry();
}

void add_parameters(const Function& function, BlockId block, std::vector<DefinitionSite>& definitions) {
  std::span<const ValueId> parameters = function.parameters(block);
  for (uint32_t i = 0; i < parameters.size(); ++i)
    definitions[parameters[i].index()] = {{}, block, i};
}

} // namespace

std::vector<DefinitionSite> definition_sites(const Function& function) {
  assert(function.is_ssa);
  std::vector<DefinitionSite> definitions(function.values.size());
  for (BlockId block : function.layout) {
    add_parameters(function, block, definitions);
    for (InstructionId id : function.instructions_in(block))
      for_each_definition(function, id, [&](ValueId value) { definitions[value.index()] = {id, block}; });
  }
  place_undefined(function, definitions);
  return definitions;
}

DefUse::DefUse(const Function& function) {
  assert(function.is_ssa);
  definitions_.resize(function.values.size());
  use_start_.assign(function.values.size() + 1, 0);
  for (BlockId block : function.layout) {
    add_parameters(function, block, definitions_);
    for (InstructionId id : function.instructions_in(block)) {
      for (const Operand& operand : function.operands_of(id)) {
        if (!operand.is(OperandKind::value)) continue;
        const uint32_t value = operand.as_value().index();
        if (operand.is_definition())
          definitions_[value] = {id, block};
        else
          ++use_start_[value + 1];
      }
      if (ValueId guard = function.instructions[id].guard) ++use_start_[guard.index() + 1];
    }
    for (EdgeId edge : function.successors(block))
      for (ValueId argument : function.arguments(edge))
        ++use_start_[argument.index() + 1];
  }
  place_undefined(function, definitions_);
  for (size_t i = 0; i + 1 < use_start_.size(); ++i)
    use_start_[i + 1] += use_start_[i];
  uses_.resize(use_start_.back());
  std::vector<uint32_t> next(use_start_.begin(), use_start_.end() - 1);
  for_each_use_site(function, [&](ValueId value, Use use) { uses_[next[value.index()]++] = use; });
}

} // namespace ptxrewrite::ir
