// See kernel_parameters.h.
#include "ir/core/kernel_parameters.h"

#include <algorithm>

namespace ptxrewrite::ir {

bool is_own_parameter(const Function& function, SymbolRef symbol) {
  if (symbol.kind() != SymbolRef::Kind::local_variable) return false;
  const std::span<const VariableId> own = function.variable_lists.view(function.signature.parameters);
  return std::find(own.begin(), own.end(), symbol.variable()) != own.end();
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
