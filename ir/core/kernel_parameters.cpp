// See kernel_parameters.h.
#include "ir/core/kernel_parameters.h"

#include <algorithm>

namespace ptxrewrite::ir {

bool is_own_parameter(const Function& function, SymbolRef symbol) {
  if (symbol.kind() != SymbolRef::Kind::local_variable) return false;
  const VariableId variable = symbol.variable();
  if (!function.variables.contains(variable) || !is_param(function.variables[variable].space)) return false;
  const std::span<const VariableId> own = function.variable_lists.view(function.signature.parameters);
  if (own.empty()) return false;
  // Parameters of the source have consecutive numbers; passes append theirs after all other variables.
  const size_t place = size_t(variable.index()) - own.front().index();
  if (variable >= own.front() && place < own.size() && own[place] == variable) return true;
  return std::find(own.begin(), own.end(), variable) != own.end();
}

bool loads_kernel_parameter(const Function& function, InstructionId id) {
  const Form& form = function.form_of(id);
  if (!function.is_entry || form.opcode != Opcode::ld || !is_param(form.space) || form.effects.atomic ||
      form.effects.volatile_result)
    return false;
  const std::span<const Operand> operands = function.operands_of(id);
  const size_t address = next_sibling(operands, 0);
  if (address + 1 >= operands.size() || !operands[address].is(OperandKind::address)) return false;
  const Operand& base = operands[address + 1];
  return base.is(OperandKind::symbol) && is_own_parameter(function, base.as_symbol());
}

} // namespace ptxrewrite::ir
