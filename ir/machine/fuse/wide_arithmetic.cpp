#include "ir/machine/fuse/wide_arithmetic.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>

namespace ptxrewrite::ir {

static bool is_sign_extension(const LoweringContext& context, InstructionId id) {
  const Form* form = context.form(id);
  return form && form->opcode == Opcode::cvt && form->type(1) == ScalarType::s32 && is_int64(*form) &&
         context.result(id);
}

bool is_absorbed_sign(const LoweringContext& context, const Operand* operand) {
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

// Weight of the product by itself, if more than one sum reads it: for a power of two, shifts of two words, or the words
// that the literal leaves.
uint16_t weight_of_product(const Form& form, const Operand* factor) {
  if (!is_power_of_two(factor)) return 1;
  if (factor->immediate > 1) return 2;
  return is_signed(form.type()) ? 1 : 0;
}

} // namespace

// mad.wide counts as a product and a sum, fused only if the product has a single sum: with a power of two where the sum
// takes two instructions (LEA, LEA.HI), with other factors where it takes one (IMAD.WIDE; IMAD.SHL, IMAD.HI, IADD.64).
// Products that have been computed before are reused.
bool wide_product_and_sum(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::mad || !form.has(Modifier::wide) || bit_width(form.type()) != 32) return false;
  const uint16_t sum = fact(context.capability, MachineFact::wide_sum);
  const Operand *a = context.source(id, 0), *b = context.source(id, 1);
  if (!a || !b || !a->is(OperandKind::value)) return false;
  const uint16_t product = weight_of_product(form, b);
  context.costs[id.index()].weight =
      is_power_of_two(b) == (sum > 1) ? std::max(product, sum) : static_cast<uint16_t>(product + sum);
  const auto [place, is_first] = context.wide_products.try_emplace(
      {a->as_value(), b->kind, b->is(OperandKind::value) ? b->id : b->immediate, is_signed(form.type())}, id);
  if (is_first || !context.dominators.dominates(context.function.instructions[place->second].block,
                                                context.function.instructions[id].block))
    return false;
  context.costs[place->second.index()].weight = product + sum;
  context.costs[id.index()].weight = sum;
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

} // namespace ptxrewrite::ir
