#include "ir/machine/select/linear_operands.h"

#include "ir/isa/isa.h"

#include <algorithm>

namespace ptxrewrite::ir {
namespace {

constexpr unsigned most_registers = 4;

// True for a single machine instruction on the 32-bit units.
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

// Values that share the register of `value`: itself, and what edges pass to it as a block parameter.
std::vector<ValueId> next_values(const Function& function, ValueId value) {
  std::vector<ValueId> next{value};
  for (BlockId block : function.layout)
    for (EdgeId edge : function.successors(block)) {
      std::span<const ValueId> parameters = function.parameters(function.edges[edge].to);
      std::span<const ValueId> given = function.arguments(edge);
      for (size_t i = 0; i < std::min(parameters.size(), given.size()); ++i)
        if (parameters[i] == value) next.push_back(given[i]);
    }
  return next;
}

// True if general registers in the sum still have their values at the reader. Such registers are loop counters.
bool holds_until(const LoweringContext& context, InstructionId id, InstructionId reader) {
  const Function& function = context.function;
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
    if (!operand->is(OperandKind::value)) continue;
    ValueId value = operand->as_value();
    if (function.values[value].register_class != RegisterClass::general) continue;
    if (!context.same_block(id, reader)) return false;
    std::vector<ValueId> next = next_values(function, value);
    for (InstructionId between = id; between && between != reader; between = function.instructions[between].next) {
      bool written = false;
      for_each_definition(function, between,
                          [&](ValueId one) { written |= std::ranges::find(next, one) != next.end(); });
      if (written) return false;
    }
  }
  return true;
}

LinearOperand linear_sum(const LoweringContext& context, InstructionId id) {
  const Function& function = context.function;
  LinearOperand sum;
  bool immediate = false;
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
    immediate |= operand->is(OperandKind::integer);
    if (!operand->is(OperandKind::value)) continue;
    InstructionId row = context.values.definition(operand->as_value());
    if (!row || function.instructions[row].kind != InstructionKind::linear_row)
      ++sum.registers;
    else
      for (const Operand& part : function.operands_of(row))
        sum.registers += part.is(OperandKind::value) && !part.is_definition();
  }
  sum.adds = sum.registers > 1 || immediate;
  return sum;
}

// Absorbs a sum of linear registers if all its readers can name it themselves.
void weigh_linear_operand(LoweringContext& context, InstructionId id) {
  const Function& function = context.function;
  if (!function.is_opcode(id, Opcode::r2d2_mov)) return;
  ValueId value = context.result(id);
  if (!value || function.instructions[id].guard || context.values.merges(value) ||
      context.values.readers(value).empty())
    return;
  LinearOperand sum = linear_sum(context, id);
  if (sum.adds && bit_width(context.form(id)->type()) != 32) return;
  for (InstructionId reader : context.values.readers(value)) {
    if (!context.needed[reader.index()]) continue;
    if (context.absorbed[reader.index()] || !reads_linear_operand(function, reader, value, sum)) return;
    if (sum.adds && context.reads_sum[reader.index()]) return;
    if (!holds_until(context, id, reader)) return;
  }
  for (InstructionId reader : context.values.readers(value))
    if (sum.adds) context.reads_sum[reader.index()] = true;
  context.absorbed[id.index()] = true;
  context.costs[id.index()].weight = 0;
}

} // namespace

void weigh_linear_operands(LoweringContext& context) {
  if (!context.facts.contents.has_linear_moves) return;
  context.for_each_needed([&](InstructionId id) { weigh_linear_operand(context, id); });
}

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
