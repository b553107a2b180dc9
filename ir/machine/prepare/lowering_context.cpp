#include "ir/machine/prepare/lowering_context.h"

#include "ir/core/module.h"
#include "ir/machine/prepare/constant_bank.h"
#include "ir/machine/prepare/first_generation.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <utility>

namespace ptxrewrite::ir {

const Operand* LoweringContext::find_source(InstructionId id, size_t index) const {
  const std::span<const Operand> operands = function.operands_of(id);
  const Form* known = form(id);
  size_t position = 0;
  for (size_t left = (known ? known->definitions : 0) + index; left > 0 && position < operands.size(); --left)
    position = next_sibling(operands, position);
  return position < operands.size() && !operands[position].has(OperandFlag::old_value) ? &operands[position] : nullptr;
}

InstructionId LoweringContext::definition(const Operand* operand) const {
  return operand && operand->is(OperandKind::value) ? values.definition(operand->as_value()) : InstructionId();
}

bool LoweringContext::is_literal(const Operand* operand) const {
  if (!operand) return false;
  return operand->is_constant() ||
         (operand->is(OperandKind::value) && source_of(operand->as_value()) == ValueSource::literal);
}

bool LoweringContext::is_global_variable(SymbolRef symbol) const {
  return symbol.kind() == SymbolRef::Kind::module_variable &&
         function.module().variables[symbol.variable()].space == StateSpace::global;
}

ValueSource LoweringContext::find_source_of(ValueId value) const {
  if (function.values[value].register_class != RegisterClass::general) return ValueSource::computed;
  // The number of steps is limited: chains are short, and in functions as read they could be cyclic.
  for (int step = 0; step < 8; ++step) {
    InstructionId id = values.definition(value);
    if (!id || function.instructions[id].guard) return ValueSource::computed;
    const Form* known = form(id);
    if (!known) return ValueSource::computed;
    const Operand* operand = source(id, 0);
    if (!operand) return ValueSource::computed;
    if (reads_constant_bank(function, id)) {
      bool constant_address = operand->is(OperandKind::address) && operand->group_size() == 1 &&
                              !operand[1].is(OperandKind::value) && known->vector_width == 1;
      return constant_address ? ValueSource::constant_bank : ValueSource::computed;
    }
    bool narrows = known->opcode == Opcode::cvt && !is_float(known->type(0)) && !is_float(known->type(1)) &&
                   bit_width(known->type(0)) <= bit_width(known->type(1)) && bit_width(known->type(0)) >= 32;
    if (known->opcode != Opcode::mov && known->opcode != Opcode::cvta && !narrows) return ValueSource::computed;
    if (operand->is(OperandKind::symbol) && is_global_variable(operand->as_symbol())) return ValueSource::constant_bank;
    if (operand->is_constant() || operand->is(OperandKind::symbol)) return ValueSource::literal;
    if (operand->is(OperandKind::special_register)) {
      auto special = static_cast<SpecialRegister>(operand->id);
      bool shape = special == SpecialRegister::ntid || special == SpecialRegister::nctaid;
      const bool masked = bit_width(known->type()) < 32; // the low half
      return shape && !masked ? ValueSource::constant_bank : ValueSource::computed;
    }
    if (!operand->is(OperandKind::value)) return ValueSource::computed;
    value = operand->as_value();
  }
  return ValueSource::computed;
}

ValueId LoweringContext::root_of(ValueId value) const {
  constexpr int longest = 8; // copies
  for (int i = 0; i < longest; ++i) {
    const InstructionId id = values.definition(value);
    const Form* known = id ? form(id) : nullptr;
    if (!known || (known->opcode != Opcode::mov && known->opcode != Opcode::cvta)) break;
    const Operand* operand = source(id, 0);
    if (!operand || !operand->is(OperandKind::value)) break;
    value = operand->as_value();
  }
  return value;
}

bool LoweringContext::reads_as_address(InstructionId reader, ValueId value) const {
  const Form* known = form(reader);
  if (!known || !is_memory(*known)) return false;
  std::span<const Operand> operands = function.operands_of(reader);
  for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i)) {
    if (operands[i].is(OperandKind::address)) continue;
    for (size_t part = i; part < next_sibling(operands, i); ++part)
      if (operands[part].is(OperandKind::value) && !operands[part].is_definition() &&
          operands[part].as_value() == value)
        return false; // stored
  }
  return function.instructions[reader].guard != value;
}

bool LoweringContext::last_is_literal(InstructionId id) const {
  const Operand *last = nullptr, *before = nullptr;
  const std::span<const Operand> operands = function.operands_of(id);
  for (const Operand* operand = source(id, 0); operand;) {
    before = std::exchange(last, operand);
    const size_t next = next_sibling(operands, static_cast<size_t>(operand - operands.data()));
    operand = next < operands.size() && !operands[next].has(OperandFlag::old_value) ? &operands[next] : nullptr;
  }
  const Opcode opcode = form(id)->opcode;
  const bool is_field = opcode == Opcode::bfe || opcode == Opcode::bfi;
  return is_literal(last) && (!is_field || is_literal(before));
}

unsigned LoweringContext::words_of(ValueId value) const {
  if (capability < first_generation_end && low_halves[value.index()]) return 1;
  return std::max(1u, (bit_width(function.values[value].type) + 31) / 32);
}

} // namespace ptxrewrite::ir
