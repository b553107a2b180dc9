#include "ir/machine/prepare/constant_bank.h"

#include "ir/core/kernel_parameters.h"
#include "ir/core/module.h"

namespace ptxrewrite::ir {

namespace {

// True for words and pairs of words: narrower values need a load, which extends them.
bool loads_constant_variable(const Function& function, InstructionId id) {
  const Form& form = function.form_of(id);
  if (form.opcode != Opcode::ld || form.space != StateSpace::constant || form.effects.volatile_result ||
      form.vector_width != 1 || bit_width(form.type()) < 32)
    return false;
  const std::span<const Operand> operands = function.operands_of(id);
  const size_t address = next_sibling(operands, 0);
  if (address + 1 >= operands.size() || !operands[address].is(OperandKind::address) ||
      operands[address].group_size() != 1)
    return false;
  const Operand& base = operands[address + 1];
  if (!base.is(OperandKind::symbol) || base.as_symbol().kind() != SymbolRef::Kind::module_variable) return false;
  return function.module().variables[base.as_symbol().variable()].space == StateSpace::constant;
}

} // namespace

bool reads_constant_bank(const Function& function, InstructionId id) {
  return loads_kernel_parameter(function, id) || loads_constant_variable(function, id);
}

} // namespace ptxrewrite::ir
