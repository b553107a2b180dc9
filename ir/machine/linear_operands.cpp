#include "ir/machine/linear_operands.h"

#include "ir/isa.h"

namespace ptxrewrite::ir {
namespace {

constexpr unsigned most_registers = 4;

// On the 32-bit units, in one machine instruction.
bool computes(const Form& form) {
  switch (form.kind) {
  case InstructionClass::integer:
    return form.opcode != Opcode::div && form.opcode != Opcode::rem;
  case InstructionClass::comparison:
  case InstructionClass::selection:
  case InstructionClass::logic:
  case InstructionClass::shift:
  case InstructionClass::conversion:
    return true;
  default:
    return false;
  }
}

} // namespace

bool reads_linear_operand(const Function& function, InstructionId reader, ValueId value, LinearOperand operand) {
  const Instruction& row = function.instructions[reader];
  if (row.kind != InstructionKind::real || row.guard == value) return false;
  const Form& form = function.form_of(reader);
  if (form.opaque || form.kind == InstructionClass::data_movement ||
      form.kind == InstructionClass::address_conversion || form.kind == InstructionClass::extension)
    return false;
  if (operand.adds && !computes(form)) return false;
  unsigned times = 0, registers = operand.registers;
  std::span<const Operand> operands = function.operands_of(reader);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& one = operands[i];
    const bool in_group = next_sibling(operands, i) > i + 1;
    if (in_group && (operand.adds || !one.is(OperandKind::address))) return false;
    if (!one.is(OperandKind::value) || one.is_definition()) continue;
    if (one.as_value() != value) {
      registers += function.values[one.as_value()].type != ScalarType::pred && !one.has(OperandFlag::old_value);
      continue;
    }
    ++times;
    if (one.has(OperandFlag::old_value) || one.selector != no_selector) return false;
  }
  return !operand.adds || (times == 1 && registers <= most_registers);
}

} // namespace ptxrewrite::ir
