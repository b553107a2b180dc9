#include "ir/machine/select/wide_arithmetic.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/first_generation.h"
#include "ir/machine/prepare/rule_helpers.h"
#include "ir/machine/select/constant_operands.h"

namespace ptxrewrite::ir {

static bool is_sign_extension(const LoweringContext& context, InstructionId id) {
  const Form* form = context.form(id);
  return form && form->opcode == Opcode::cvt && form->type(1) == ScalarType::s32 && is_int64(*form) &&
         context.result(id);
}

// A 32-bit value with its sign in 64 bits, and no register for the sign so far.
static bool is_absorbed_sign(const LoweringContext& context, const Operand* operand) {
  const InstructionId definition = context.definition(operand);
  if (!definition) return false;
  if (is_sign_extension(context, definition)) return context.absorbed[definition.index()];
  if (!context.function.is_opcode(definition, Opcode::mov)) return false;
  const Operand* words = context.source(definition, 0);
  if (!words || words->group_size() != 2) return false;
  const InstructionId sign = context.definition(words + 2);
  return sign && is_sign_of_pair(context, sign) && context.absorbed[sign.index()];
}

uint16_t signs_in_registers(const LoweringContext& context, InstructionId sum) {
  return static_cast<uint16_t>(is_absorbed_sign(context, context.source(sum, 0)) +
                               is_absorbed_sign(context, context.source(sum, 1)));
}

namespace {

bool is_minuend(const LoweringContext& context, InstructionId difference, ValueId value) {
  const Operand* minuend = context.source(difference, 0);
  const Operand* subtrahend = context.source(difference, 1);
  return context.function.is_opcode(difference, Opcode::sub) && minuend->is(OperandKind::value) &&
         minuend->as_value() == value && !(subtrahend->is(OperandKind::value) && subtrahend->as_value() == value);
}

} // namespace

// mul.wide + add.s64: one wide multiply-add each; less something else, too.
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
    return user && is_add_or_sub(*user) && is_int64(*user) && (is_add(*user) || is_minuend(context, reader, value)) &&
           !context.absorbs[reader.index()] && !context.absorbed[reader.index()] &&
           !is_constant_place(context, reader) && (first_generation || !is_left_to_accesses(context, reader));
  };
  if (!all_readers(context, value, fits)) return false;
  for (InstructionId reader : context.values.readers(value)) {
    take_over(context, reader);
    context.costs[reader.index()].weight =
        fact(context.capability, MachineFact::wide_sum) + (first_generation ? 0 : signs_in_registers(context, reader));
  }
  return true;
}

// An index times a power of two, where products are made of smaller ones: shifts of both words; one sum takes the low
// one over (ISCADD with carry).
bool scaled_index(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if ((form.opcode != Opcode::mul && form.opcode != Opcode::mad) || !form.has(Modifier::wide) || !is_int32(form) ||
      !is_power_of_two(context.source(id, 1)))
    return false;
  uint16_t& weight = context.costs[id.index()].weight;
  if (all_readers(context, context.result(id), [&](InstructionId user) { return is_constant_place(context, user); }))
    return false; // constant_index() has weighed it
  if (form.opcode == Opcode::mad) {
    weight = 3;
    return false;
  }
  weight = 2;
  const InstructionId reader = context.result(id) ? context.values.only_reader(context.result(id)) : InstructionId();
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_add(*user) || !is_int64(*user) || context.absorbs[reader.index()] ||
      is_constant_place(context, reader))
    return false;
  take_over(context, reader);
  weight = 1;
  return false;
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

// (a << k) + b in 64 bits: LEA and LEA.HI, as many as the sum alone takes; for one sum.
bool wide_shift_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::shl || form.type() != ScalarType::b64 || !context.is_literal(context.source(id, 1)))
    return false;
  const ValueId value = context.result(id);
  const InstructionId reader = value ? context.values.only_reader(value) : InstructionId();
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_add(*user) || !is_int64(*user) || context.absorbs[reader.index()] ||
      context.absorbed[reader.index()] || is_constant_place(context, reader))
    return false;
  take_over(context, reader);
  context.costs[reader.index()].weight += signs_in_registers(context, reader);
  return true;
}

// (a << k) in 32 bits, zero-extended for one sum in 64: LEA for the low words, which is all that is shifted.
bool extended_shift_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const bool shifts = form.opcode == Opcode::shl && context.is_literal(context.source(id, 1));
  const bool multiplies = form.opcode == Opcode::mul && !form.has(Modifier::wide) && !form.has(Modifier::hi) &&
                          (is_power_of_two(context.source(id, 0)) || is_power_of_two(context.source(id, 1)));
  if (!is_int32(form) || !(shifts || multiplies) || context.function.instructions[id].guard) return false;
  const ValueId value = context.result(id);
  const InstructionId extension = value ? context.values.only_reader(value) : InstructionId();
  const Form* extends = extension ? context.form(extension) : nullptr;
  if (!extends || extends->opcode != Opcode::cvt || extends->type(1) != ScalarType::u32 || !is_int64(*extends))
    return false;
  const ValueId extended = context.result(extension);
  const InstructionId sum = extended ? context.values.only_reader(extended) : InstructionId();
  const Form* user = sum ? context.form(sum) : nullptr;
  if (!user || !is_add(*user) || !is_int64(*user) || context.absorbs[sum.index()] || context.absorbed[sum.index()])
    return false;
  take_over(context, sum);
  return true;
}

// a * b in 64 bits: the cross products, then a wide multiply-add with carry for each sum that reads it.
bool long_multiply_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!(form.opcode == Opcode::mul || form.opcode == Opcode::mad) || !form.has(Modifier::lo) || !is_int64(form))
    return false;
  const uint16_t crosses = context.is_literal(context.source(id, 1)) ? 1 : 2;
  uint16_t& weight = context.costs[id.index()].weight;
  weight = crosses + 2;
  if (form.opcode == Opcode::mad) return false;
  const bool added = all_readers(context, context.result(id), [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return user && is_add(*user) && is_int64(*user) && !context.absorbs[reader.index()] &&
           !context.absorbed[reader.index()];
  });
  if (!added) return false;
  for (InstructionId reader : context.values.readers(context.result(id)))
    take_over(context, reader);
  weight = crosses;
  return false;
}

// One sum makes the sign of an operand as it goes (LEA.HI.X.SX32): one operand's, and not what it takes away.
static bool reader_makes_sign(const LoweringContext& context, ValueId value) {
  const InstructionId reader = context.values.only_reader(value);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_add_or_sub(*user) || !is_int64(*user) || context.absorbs[reader.index()]) return false;
  if (user->opcode == Opcode::sub) return is_minuend(context, reader, value);
  const Operand* other = context.source(reader, 0);
  if (other->is(OperandKind::value) && other->as_value() == value) other = context.source(reader, 1);
  return !is_absorbed_sign(context, other);
}

// The high word of zero is in no register: sums, shifts and compares read RZ, logic may leave the other's as it is.
static bool readers_know_zero(LoweringContext& context, ValueId value) {
  const bool all = all_readers(context, value, [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return user && is_int64(*user) &&
           (user->kind == InstructionClass::integer || user->kind == InstructionClass::logic ||
            user->kind == InstructionClass::comparison || user->opcode == Opcode::shl);
  });
  if (!all) return false;
  for (InstructionId reader : context.values.readers(value))
    if (context.function.is_opcode(reader, Opcode::or_) || context.function.is_opcode(reader, Opcode::xor_))
      context.costs[reader.index()].weight = 1;
  return true;
}

bool extension(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (is_sign_extension(context, id))
    return has(context.capability, MachineFact::signs_in_long_sums) && reader_makes_sign(context, context.result(id));
  return form.opcode == Opcode::cvt && form.type(1) == ScalarType::u32 && is_int64(form) &&
         readers_know_zero(context, context.result(id));
}

// a < 0 and its opposite: the high word says it.
bool sign_test(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const Operand* zero = context.source(id, 1);
  if (form.opcode == Opcode::setp && form.type() == ScalarType::s64 &&
      (form.has(Modifier::lt) || form.has(Modifier::ge)) && zero && zero->is(OperandKind::integer) &&
      zero->immediate == 0)
    context.costs[id.index()].weight = 1;
  return false;
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
  return reader_makes_sign(context, context.result(context.values.only_reader(context.result(id))));
}

} // namespace ptxrewrite::ir
