// Determined by assembling each function on arguments that are read again, known not to be denormal, literal and
// shared: see scaled_arguments.h.
#include "ir/machine/fuse/scaled_arguments.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::ir {

namespace {

constexpr uint16_t scaling = 3; // a comparison, the scaled argument and the scaled result

bool is_approximate(const Form& form) {
  return form.type() == ScalarType::f32 && (form.has(Modifier::approx) || form.has(Modifier::full));
}

bool is_scaled_function(Opcode opcode) {
  return opcode == Opcode::ex2 || opcode == Opcode::lg2 || opcode == Opcode::sqrt || opcode == Opcode::rsqrt;
}

} // namespace

bool ScaledArguments::is_quotient_by(InstructionId id, const Form& form, ValueId divisor) const {
  const Form* other = context_.form(id);
  if (!other || other->opcode != Opcode::div || !is_approximate(*other) ||
      other->has(Modifier::full) != form.has(Modifier::full) || other->has(Modifier::ftz) != form.has(Modifier::ftz))
    return false;
  const Operand* operand = context_.source(id, 1);
  return operand && operand->is(OperandKind::value) && operand->as_value() == divisor;
}

// True if the argument is in a register that is read after the instruction, or is negated by its reader.
bool ScaledArguments::is_read_later(InstructionId id, const Operand* argument) const {
  if (!argument || !argument->is(OperandKind::value)) return false;
  const ValueId value = argument->as_value();
  if (context_.source_of(value) != ValueSource::computed) return false;
  const InstructionId definition = context_.values.definition(value);
  if (definition && context_.function.is_opcode(definition, Opcode::neg)) return true;
  if (context_.values.merges(value)) return false;
  constexpr size_t most = 32; // readers looked at
  const std::span<const InstructionId> readers = context_.values.readers(value);
  const Form& form = *context_.form(id);
  return std::ranges::any_of(readers.last(std::min(most, readers.size())), [&](InstructionId reader) {
    return reader != id && context_.needed[reader.index()] && !passed_[reader.index()] &&
           !is_quotient_by(reader, form, value);
  });
}

bool ScaledArguments::is_never_small(const Operand* argument) const {
  const InstructionId sum = context_.definition(argument);
  const Form* form = sum ? context_.form(sum) : nullptr;
  if (!form || form->opcode != Opcode::add || form->type() != ScalarType::f32) return false;
  for (size_t i : {0, 1}) {
    if (!context_.is_literal(context_.source(sum, 1 - i))) continue;
    const InstructionId term = context_.definition(context_.source(sum, i));
    const Form* of_term = term ? context_.form(term) : nullptr;
    if (!of_term) return false;
    if (of_term->opcode == Opcode::ex2 || (of_term->opcode == Opcode::abs && is_float(of_term->type()))) return true;
    const Operand *a = context_.source(term, 0), *b = context_.source(term, 1);
    return of_term->opcode == Opcode::mul && a && b && a->is(OperandKind::value) && b->is(OperandKind::value) &&
           a->as_value() == b->as_value();
  }
  return false;
}

// True if an earlier quotient has scaled the divisor and computed its reciprocal.
bool ScaledArguments::shares_divisor(InstructionId id, const Form& form, ValueId divisor) {
  const auto [place, first] = quotients_.try_emplace({divisor, form.has(Modifier::full), form.has(Modifier::ftz)}, id);
  return !first && dominators_.dominates(context_.function.instructions[place->second].block,
                                         context_.function.instructions[id].block);
}

// True for the first quotient of the literal, which moves it into a register.
bool ScaledArguments::is_first(const Operand& dividend) {
  const Operand* literal = &dividend;
  constexpr int longest = 4; // chain of copies
  for (int step = 0; step < longest && literal && literal->is(OperandKind::value); ++step) {
    const InstructionId copy = context_.definition(literal);
    literal = copy && context_.function.is_opcode(copy, Opcode::mov) ? context_.source(copy, 0) : nullptr;
  }
  return literal && literal->is_constant() && literals_.insert(literal->immediate).second;
}

void ScaledArguments::weigh_quotient(InstructionId id, const Form& form) {
  const bool full = form.has(Modifier::full), ftz = form.has(Modifier::ftz);
  const Operand *dividend = context_.source(id, 0), *divisor = context_.source(id, 1);
  if (!dividend || !divisor || !divisor->is(OperandKind::value) || context_.is_literal(divisor) || (!full && ftz))
    return;
  if (shares_divisor(id, form, divisor->as_value())) {
    cost(id) = full && !ftz ? 3 : 2;
    return;
  }
  const bool large = !ftz && is_never_small(divisor);
  if (large) cost(id) = static_cast<uint16_t>(cost(id) - scaling);
  if (large && !full) return; // nothing else is scaled
  cost(id) =
      static_cast<uint16_t>(cost(id) + is_first(*dividend) + is_read_later(id, dividend) + is_read_later(id, divisor));
}

void ScaledArguments::weigh(InstructionId id, const Form& form) {
  passed_[id.index()] = true;
  if (!is_approximate(form)) return;
  if (form.opcode == Opcode::div) {
    weigh_quotient(id, form);
  } else if (is_scaled_function(form.opcode) && !form.has(Modifier::ftz)) {
    const Operand* argument = context_.source(id, 0);
    if (is_never_small(argument))
      cost(id) = static_cast<uint16_t>(cost(id) - scaling);
    else if (is_read_later(id, argument))
      ++cost(id);
  }
}

} // namespace ptxrewrite::ir
