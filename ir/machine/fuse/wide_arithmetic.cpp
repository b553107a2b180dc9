#include "ir/machine/fuse/wide_arithmetic.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>

namespace ptxrewrite::ir {

bool is_wide_multiply_add(const LoweringContext& context, InstructionId id) {
  const Form* form = context.form(id);
  return form && form->opcode == Opcode::mad && form->has(Modifier::wide) && bit_width(form->type()) == 32;
}

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

// The mad.wide that the last operand of another one comes from, if both have the same sign and nothing else reads it:
// its addend and both products are summed at once (IADD3, IADD3.X). Of a chain every second one joins the one before.
static InstructionId joined_addend(const LoweringContext& context, InstructionId id) {
  if (fact(context.capability, MachineFact::wide_sum) < 2 || !has(context.capability, MachineFact::separate_lanes))
    return {};
  const InstructionId from = context.definition(context.source(id, 2));
  if (!from || !is_wide_multiply_add(context, from) || context.joined_sums.contains(from)) return {};
  if (is_signed(context.form(from)->type()) != is_signed(context.form(id)->type())) return {};
  const bool alone = context.values.only_reader(context.result(from)) == id && context.same_block(from, id);
  return alone && !context.function.instructions[from].guard ? from : InstructionId();
}

// mad.wide counts as a product and a sum, fused only if the product has a single sum: with a power of two where the sum
// takes two instructions (LEA, LEA.HI), with other factors where it takes one (IMAD.WIDE; IMAD.SHL, IMAD.HI, IADD.64).
// Products that have been computed before are reused, sums of two products joined.
bool wide_product_and_sum(LoweringContext& context, InstructionId id) {
  if (!is_wide_multiply_add(context, id)) return false;
  const Form& form = *context.form(id);
  const uint16_t sum = fact(context.capability, MachineFact::wide_sum);
  const Operand *a = context.source(id, 0), *b = context.source(id, 1);
  if (!a || !b || !a->is(OperandKind::value)) return false;
  const uint16_t product = weight_of_product(form, b);
  uint16_t& weight = context.costs[id.index()].weight;
  weight = is_power_of_two(b) == (sum > 1) ? std::max(product, sum) : static_cast<uint16_t>(product + sum);
  const auto [place, is_first] = context.wide_products.try_emplace(
      {a->as_value(), b->kind, b->is(OperandKind::value) ? b->id : b->immediate, is_signed(form.type())}, id);
  const bool known = !is_first && context.dominators.dominates(context.function.instructions[place->second].block,
                                                               context.function.instructions[id].block);
  if (known) {
    if (!context.joined_sums.contains(place->second)) context.costs[place->second.index()].weight = product + sum;
    weight = sum;
  }
  if (const InstructionId addend = joined_addend(context, id)) {
    uint16_t& other = context.costs[addend.index()].weight;
    const Operand* factor = context.source(addend, 1);
    const uint16_t first = weight_of_product(*context.form(addend), factor);
    other = other == sum && !is_power_of_two(factor) ? 0 : first;
    if (!known) weight = product + sum;
    context.joined_sums.insert(addend);
    context.joined_sums.insert(id);
  }
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
