#include "ir/machine/wide_arithmetic.h"

#include "ir/machine/first_generation.h"
#include "ir/machine/rule_helpers.h"

namespace ptxrewrite::ir {

// mul.wide + add.s64: one wide multiply-add each.
bool wide_multiply_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::mul || !form.has(Modifier::wide) || bit_width(form.type()) != 32) return false;
  ValueId value = context.result(id);
  bool first_generation = context.capability < first_generation_end;
  if (first_generation && is_power_of_two(context.source(id, 1))) return false; // a shift
  auto fits = [&](InstructionId reader) {
    const Form* user = context.form(reader);
    if (first_generation && !(context.result(reader) && context.low_halves[context.result(reader).index()]))
      return false;
    return user && is_add(*user) && is_int64(*user) && !context.absorbs[reader.index()] &&
           !context.absorbed[reader.index()];
  };
  if (!all_readers(context, value, fits)) return false;
  for (InstructionId reader : context.values.readers(value)) {
    take_over(context, reader);
    context.costs[reader.index()].weight = 1;
  }
  return true;
}

namespace {

// The product alone, where more than one sum reads it: by a power of two, two words of shifts or what a literal leaves
// of them.
uint16_t weight_of_product(const Form& form, const Operand* factor) {
  if (!is_power_of_two(factor)) return 1;
  if (factor->immediate > 1) return 2;
  return is_signed(form.type()) ? 1 : 0;
}

} // namespace

// mad.wide is a product and a sum of two words, never fused but for one sum with a power of two (LEA, LEA.HI). Products
// that have been computed before are not computed again.
bool wide_product_and_sum(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::mad || !form.has(Modifier::wide) || bit_width(form.type()) != 32) return false;
  constexpr uint16_t sum = 2;
  const Operand *a = context.source(id, 0), *b = context.source(id, 1);
  if (!a || !b || !a->is(OperandKind::value)) return false;
  const uint16_t product = weight_of_product(form, b);
  context.costs[id.index()].weight = is_power_of_two(b) ? sum : product + sum;
  const auto [place, is_first] = context.wide_products.try_emplace(
      {a->as_value(), b->kind, b->is(OperandKind::value) ? b->id : b->immediate, is_signed(form.type())}, id);
  if (is_first || !context.dominators.dominates(context.function.instructions[place->second].block,
                                                context.function.instructions[id].block))
    return false;
  context.costs[place->second.index()].weight = product + sum;
  context.costs[id.index()].weight = sum;
  return false;
}

// (a << k) + b in 64 bits: LEA and LEA.HI, as many as the sum alone takes.
bool wide_shift_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::shl || form.type() != ScalarType::b64 || !context.is_literal(context.source(id, 1)))
    return false;
  ValueId value = context.result(id);
  auto fits = [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return user && is_add(*user) && is_int64(*user) && !context.absorbs[reader.index()] &&
           !context.absorbed[reader.index()];
  };
  if (!all_readers(context, value, fits)) return false;
  for (InstructionId reader : context.values.readers(value))
    take_over(context, reader);
  return true;
}

// Do all readers make the high half of an extended 32-bit value themselves? Sums do, shifts and logic where it is zero.
static bool readers_extend(const LoweringContext& context, ValueId value, bool is_signed_source) {
  return all_readers(context, value, [&](InstructionId reader) {
    const Form* user = context.form(reader);
    if (!user || !is_int64(*user)) return false;
    if (is_add_or_sub(*user)) return true;
    return !is_signed_source && (user->kind == InstructionClass::integer || user->kind == InstructionClass::logic ||
                                 user->opcode == Opcode::shl);
  });
}

bool extension(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::cvt || bit_width(form.type(0)) != 64 || is_float(form.type(0))) return false;
  ScalarType from = form.type(1);
  if (from != ScalarType::s32 && from != ScalarType::u32) return false;
  return readers_extend(context, context.result(id), from == ScalarType::s32);
}

// {a, a >> 31}: the same extension in two steps.
bool is_sign_of_pair(const LoweringContext& context, InstructionId id) {
  const Form* form = context.form(id);
  if (!form || form->opcode != Opcode::shr || form->type() != ScalarType::s32 || !context.result(id)) return false;
  const Operand* value = context.source(id, 0);
  const Operand* shift = context.source(id, 1);
  if (!value->is(OperandKind::value) || !shift->is(OperandKind::integer) || shift->immediate != 31) return false;
  const InstructionId pack = context.values.only_reader(context.result(id));
  if (!pack || !context.function.is_opcode(pack, Opcode::mov) || !context.result(pack)) return false;
  const Operand* words = context.source(pack, 0);
  return words && words->group_size() == 2 && words[1].is(OperandKind::value) &&
         words[1].as_value() == value->as_value();
}

bool extension_by_shift(LoweringContext& context, InstructionId id) {
  if (!is_sign_of_pair(context, id)) return false;
  return readers_extend(context, context.result(context.values.only_reader(context.result(id))), true);
}

} // namespace ptxrewrite::ir
