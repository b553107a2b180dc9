// The fusion rules, see lowering_rules.h.
#include "ir/machine/select/lowering_rules.h"

#include "ir/core/kernel_parameters.h"
#include "ir/core/module.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/first_generation.h"
#include "ir/machine/prepare/rule_helpers.h"
#include "ir/machine/select/constant_operands.h"
#include "ir/machine/select/disjoint.h"
#include "ir/machine/select/second_constants.h"
#include "ir/machine/select/wide_arithmetic.h"

#include <algorithm>
#include <utility>

namespace ptxrewrite::ir {

namespace {

using Fact = MachineFact;

// address + constant: in the 24-bit immediate of the accesses.
bool constant_address_offset(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!is_add(form) || !(is_int64(form) || is_int32(form)) || context.function.instructions[id].guard) return false;
  const Operand* left = context.source(id, 0);
  const Operand* right = context.source(id, 1);
  bool constant_right = is_address_constant(context, right), constant_left = is_address_constant(context, left);
  if (!(constant_right || constant_left) || !hands_constant_on(context, context.result(id))) return false;
  const Operand* rest = constant_right ? left : right;
  if (rest->is(OperandKind::value)) context.without_constant[context.result(id).index()] = rest->as_value();
  return true;
}

// The value without the constants that the accesses add.
ValueId strip(const LoweringContext& context, ValueId value) {
  while (ValueId rest = context.without_constant[value.index()])
    value = rest;
  return value;
}

// The same sum again, apart from constants that go into the accesses.
bool equal_sum(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!is_add(form) || !(is_int64(form) || is_int32(form)) || context.function.instructions[id].guard) return false;
  const Operand* left = context.source(id, 0);
  const Operand* right = context.source(id, 1);
  ValueId sum = context.result(id);
  if (!left || !right || !sum || !left->is(OperandKind::value) || !right->is(OperandKind::value)) return false;
  ValueId a = strip(context, left->as_value()), b = strip(context, right->as_value());
  // Where registers are written again, the same names need not be the same sum.
  if (!context.function.is_ssa &&
      !(context.values.definition(a) && context.values.definition(b) && context.values.definition(sum)))
    return false;
  auto [place, first] = context.sums.try_emplace(std::minmax(a, b), sum);
  if (first) return false;
  InstructionId earlier = context.values.definition(place->second);
  if (!context.dominators.dominates(context.function.instructions[earlier].block,
                                    context.function.instructions[id].block))
    return false;
  context.without_constant[sum.index()] = place->second;
  return true;
}

// A compare whose operands are then chosen among is a minimum or maximum.
bool select_of_compared(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::setp || !is_int32(form)) return false;
  InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || user->opcode != Opcode::selp) return false;
  auto same = [](const Operand* a, const Operand* b) {
    return a && b && a->kind == b->kind && a->id == b->id && a->immediate == b->immediate;
  };
  const Operand* a = context.source(id, 0);
  const Operand* b = context.source(id, 1);
  const Operand* first = context.source(reader, 0);
  const Operand* second = context.source(reader, 1);
  if (!((same(a, first) && same(b, second)) || (same(a, second) && same(b, first)))) return false;
  take_over(context, reader);
  return true;
}

bool reads_as_shared_address(const LoweringContext& context, InstructionId reader, ValueId value) {
  return context.reads_as_address(reader, value) && is_shared(context.form(reader)->space);
}

// Is the value read in shared addresses alone, there with constants added?
bool is_shared_address(const LoweringContext& context, ValueId value, int depth = 0) {
  return all_readers(context, value, [&](InstructionId reader) {
    if (context.reads_as_address(reader, value)) return reads_as_shared_address(context, reader, value);
    return depth < 4 && context.form(reader) && is_left_to_accesses(context, reader) &&
           is_shared_address(context, context.result(reader), depth + 1);
  });
}

// (a << k) + b, also by an or of what has no bit in common: LEA. A shift into a shared address: the scaled address of
// targets before 9.0.
bool shift_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::shl || !is_int32(form)) return false;
  const Operand* count = context.source(id, 1);
  if (!context.is_literal(count)) return false;
  ValueId value = context.result(id);
  const bool scales =
      has(context.capability, Fact::scaled_shared_address) && count->immediate >= 2 && count->immediate <= 4;
  auto fits = [&](InstructionId reader) {
    if (context.reads_as_address(reader, value)) return scales && reads_as_shared_address(context, reader, value);
    const Form* user = context.form(reader);
    if (!user || context.absorbs[reader.index()]) return false;
    if (is_left_to_accesses(context, reader)) return scales && is_shared_address(context, context.result(reader));
    return ((is_add_or_sub(*user) && is_int32(*user)) || is_sum_by_or(context, reader)) &&
           !context.absorbed[reader.index()];
  };
  if (!all_readers(context, value, fits)) return false;
  for (InstructionId reader : context.values.readers(value))
    take_over(context, reader);
  return true;
}

// (a >> k) + b: LEA.HI.
bool shift_right_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::shr || !is_int32(form)) return false;
  if (!context.is_literal(context.source(id, 1))) return false;
  InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_add(*user) || !is_int32(*user)) return false;
  take_over(context, reader);
  return true;
}

// (a >> k) & (2^n - 1): BFE.
bool bit_field(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::shr || bit_width(form.type()) != 32 || !context.is_literal(context.source(id, 1)))
    return false;
  const InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  const Operand* mask = user && user->opcode == Opcode::and_ ? context.source(reader, 1) : nullptr;
  if (!mask || !mask->is(OperandKind::integer) || bit_width(user->type()) != 32) return false;
  const auto bits = static_cast<uint32_t>(mask->immediate);
  if (bits == 0 || (bits & (bits + 1)) != 0) return false;
  take_over(context, reader);
  return true;
}

// The other half of (a << k) | (b >> (width - k)): SHF, and twice as many for 64 bits.
InstructionId opposite_shift(const LoweringContext& context, InstructionId id, InstructionId reader) {
  const Form& form = *context.form(id);
  const Operand* count = context.source(id, 1);
  for (size_t index : {0, 1}) {
    InstructionId other = context.definition(context.source(reader, index));
    const Form* shift = other && other != id ? context.form(other) : nullptr;
    if (!shift || shift->opcode != (form.opcode == Opcode::shl ? Opcode::shr : Opcode::shl)) continue;
    if (bit_width(shift->type()) != bit_width(form.type()) || is_signed(shift->type())) continue;
    const Operand* distance = context.source(other, 1);
    if (!context.same_block(id, other) || !distance || !distance->is(OperandKind::integer)) continue;
    if (count->immediate + distance->immediate != bit_width(form.type())) continue;
    return context.values.only_reader(context.result(other)) == reader ? other : InstructionId();
  }
  return {};
}

bool funnel_shift(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if ((form.opcode != Opcode::shl && form.opcode != Opcode::shr) || is_signed(form.type())) return false;
  if (bit_width(form.type()) < 32 || context.function.instructions[id].guard || !context.result(id)) return false;
  const Operand* count = context.source(id, 1);
  if (!count || !count->is(OperandKind::integer)) return false;
  InstructionId reader = context.values.only_reader(context.result(id));
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !context.same_block(id, reader) || (user->opcode != Opcode::or_ && user->opcode != Opcode::xor_))
    return false;
  InstructionId other = opposite_shift(context, id, reader);
  if (!other || (context.absorbs[reader.index()] && !context.absorbed[other.index()])) return false;
  take_over(context, reader);
  if (bit_width(form.type()) == 64) context.costs[reader.index()].weight = 4;
  return true;
}

// One word of the result is zero, and sums and logic do not compute with it.
bool shift_by_words(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const Operand* count = context.source(id, 1);
  if ((form.opcode != Opcode::shl && form.opcode != Opcode::shr) || bit_width(form.type()) != 64) return false;
  if (is_signed(form.type()) || !count || !count->is(OperandKind::integer) || count->immediate < 32) return false;
  const bool unread = all_readers(context, context.result(id), [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return user && (is_logic(*user) || is_add_or_sub(*user) || user->opcode == Opcode::cvt);
  });
  if (unread) context.costs[id.index()].weight = 1;
  return false;
}

// Words of 64-bit logic that a literal leaves as they are, or makes all zeros or ones, are not computed.
uint16_t computed_words(Opcode opcode, int64_t literal) {
  uint16_t words = 0;
  for (int word = 0; word < 2; ++word) {
    const auto bits = static_cast<uint32_t>(literal >> (32 * word));
    words += bits != 0 && (bits != UINT32_MAX || opcode == Opcode::xor_);
  }
  return words;
}

bool logic_by_words(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const Operand* literal = context.source(id, 1);
  if (!is_logic(form) || form.type() != ScalarType::b64 || !literal || !literal->is(OperandKind::integer)) return false;
  context.costs[id.index()].weight = computed_words(form.opcode, literal->immediate);
  return false;
}

// The only use of a result: is it zero? None: there is another, or what it does is taken over already.
InstructionId only_test_of_zero(const LoweringContext& context, InstructionId id) {
  const InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || user->opcode != Opcode::setp || !(user->has(Modifier::eq) || user->has(Modifier::ne))) return {};
  const Operand* zero = context.source(reader, 1);
  return zero && zero->is(OperandKind::integer) && zero->immediate == 0 ? reader : InstructionId{};
}

// Is one word of (a & literal) zero, the other being zero anyway? LOP3 says so in a predicate.
bool word_test(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const Operand* literal = context.source(id, 1);
  if (form.opcode != Opcode::and_ || form.type() != ScalarType::b64) return false;
  if (!literal || !literal->is(OperandKind::integer)) return false;
  if (static_cast<uint32_t>(literal->immediate) != 0 && literal->immediate >> 32 != 0) return false;
  const InstructionId reader = only_test_of_zero(context, id);
  if (!reader) return false;
  take_over(context, reader);
  // Whole words are compared instead, what they are made of is computed first.
  const bool whole = literal->immediate == UINT32_MAX || static_cast<uint64_t>(literal->immediate) >> 32 == UINT32_MAX;
  context.costs[reader.index()].weight = whole && context.absorbs[id.index()] ? 2 : 1;
  return true;
}

// b = f(a); p ? b : a, and nobody else reads either: f is computed in place, under a predicate.
bool select_of_changed(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::selp || !context.result(id) || context.values.merges(context.result(id))) return false;
  for (size_t index : {0, 1}) {
    const Operand* changed = context.source(id, index);
    const Operand* old = context.source(id, 1 - index);
    if (!changed || !old || !changed->is(OperandKind::value) || !old->is(OperandKind::value)) return false;
    InstructionId change = context.definition(changed);
    if (!change || !context.same_block(change, id) || context.values.only_reader(changed->as_value()) != id) continue;
    if (!is_logic(*context.form(change)) && !is_add_or_sub(*context.form(change))) continue;
    if (context.values.merges(old->as_value())) continue;
    std::span<const InstructionId> readers = context.values.readers(old->as_value());
    if (std::ranges::find(readers, change) == readers.end()) continue;
    if (std::ranges::any_of(readers, [&](InstructionId reader) { return reader != change && reader != id; })) continue;
    return true;
  }
  return false;
}

// p ? 1 : 0 with a high word of zero: one word is chosen.
bool narrow_select(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::selp || bit_width(form.type()) != 64 || is_float(form.type())) return false;
  for (size_t index : {0, 1}) {
    const Operand* choice = context.source(id, index);
    if (!choice || !choice->is(OperandKind::integer) || choice->immediate < 0 || choice->immediate > UINT32_MAX)
      return false;
  }
  const bool added = all_readers(context, context.result(id), [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return user && is_add_or_sub(*user);
  });
  if (added) context.costs[id.index()].weight = 1;
  return false;
}

bool is_zero(const Operand* operand) {
  return operand && operand->is(OperandKind::integer) && operand->immediate == 0;
}

// A predicate that is made a number and compared with zero: it is the predicate, or its opposite.
bool predicate_as_number(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::selp || is_float(form.type()) || bit_width(form.type()) > 32) return false;
  const Operand* one = context.source(id, 0);
  if (!one || !one->is(OperandKind::integer) || one->immediate == 0 || !is_zero(context.source(id, 1))) return false;
  const bool compared = all_readers(context, context.result(id), [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return user && user->opcode == Opcode::setp && !user->has(Modifier::and_) && !user->has(Modifier::or_) &&
           (user->has(Modifier::eq) || user->has(Modifier::ne)) && is_zero(context.source(reader, 1));
  });
  if (!compared) return false;
  for (InstructionId reader : context.values.readers(context.result(id)))
    context.costs[reader.index()].weight = 0;
  return true;
}

// One register, one constant bank, and 1 or 2 that carries bring (IADD3.X).
bool is_carried_sum(const LoweringContext& context, const Form& first, const Form& second,
                    std::span<const Operand> summands) {
  if (!is_add(first) || !is_add(second) || !is_int32(first) || summands.size() != 3) return false;
  const auto literals = std::ranges::count_if(summands, [](const Operand& operand) {
    return operand.is(OperandKind::integer) && (operand.immediate == 1 || operand.immediate == 2);
  });
  return literals == 1 && constants_among(context, summands) == 2;
}

// a + b + c: IADD3, twice for 64 bits.
bool three_input_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const bool wide = is_int64(form);
  if (!is_add_or_sub(form) || !(is_int32(form) || wide) || context.absorbs[id.index()]) return false;
  InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_add_or_sub(*user) || bit_width(user->type()) != bit_width(form.type()) || is_float(user->type()))
    return false;
  std::vector<Operand> summands;
  bool literal = false; // the sum of all
  for (InstructionId one : {id, reader})
    for (size_t index : {0, 1}) {
      const Operand* operand = context.source(one, index);
      if (!operand || (operand->is(OperandKind::value) && operand->as_value() == context.result(id))) continue;
      if (context.is_literal(operand) ? std::exchange(literal, true)
                                      : std::ranges::find(summands, *operand) != summands.end())
        continue;
      summands.push_back(*operand);
    }
  if (constants_among(context, summands) > 1 && !is_carried_sum(context, form, *user, summands)) return false;
  take_over(context, reader);
  if (wide)
    context.costs[reader.index()].weight += signs_in_registers(context, id) + signs_in_registers(context, reader);
  return true;
}

// What a logic instruction computes with, once for each value; nothing of it has been computed by others.
std::vector<Operand> own_leaves(const LoweringContext& context, InstructionId id) {
  std::vector<Operand> leaves;
  const size_t inputs = context.form(id)->opcode == Opcode::lop3 ? 3 : 2;
  for (size_t i = 0; i < inputs; ++i)
    if (const Operand* operand = context.source(id, i)) leaves.push_back(*operand);
  return leaves;
}

bool is_same(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.id == b.id && a.immediate == b.immediate;
}

// A truth table of up to three inputs.
bool is_table(const Form& form) {
  return is_logic(form) || form.opcode == Opcode::lop3;
}

// What the instruction's table reads when those that have been taken over are no more.
std::vector<Operand>& leaves_of(LoweringContext& context, InstructionId id) {
  auto [place, first] = context.leaves.try_emplace(id);
  if (first) place->second = own_leaves(context, id);
  return place->second;
}

// What the reader's table reads when it computes `id`, too.
std::vector<Operand> leaves_together(LoweringContext& context, InstructionId id, InstructionId reader) {
  std::vector<Operand> together = leaves_of(context, id);
  for (const Operand& leaf : leaves_of(context, reader)) {
    if (leaf.is(OperandKind::value) && leaf.as_value() == context.result(id)) continue;
    if (std::ranges::none_of(together, [&](const Operand& known) { return is_same(known, leaf); }))
      together.push_back(leaf);
  }
  return together;
}

// Is it an or that becomes a scaled sum, so that no table takes it over nor it another?
bool is_scaled_sum(const LoweringContext& context, InstructionId id) {
  for (size_t index : {0, 1}) {
    const InstructionId shift = context.definition(context.source(id, index));
    if (shift && context.function.is_opcode(shift, Opcode::shl) && context.is_literal(context.source(shift, 1)) &&
        context.values.only_reader(context.result(shift)) == id)
      return is_sum_by_or(context, id);
  }
  return false;
}

// The same when other tables that only this one reads are taken over, too.
std::vector<Operand> with_siblings(LoweringContext& context, std::vector<Operand> leaves, InstructionId reader) {
  std::vector<Operand> together;
  auto add = [&](const Operand& leaf) {
    if (std::ranges::none_of(together, [&](const Operand& known) { return is_same(known, leaf); }))
      together.push_back(leaf);
  };
  for (const Operand& leaf : leaves) {
    const InstructionId table = context.definition(&leaf);
    const Form* form = table ? context.form(table) : nullptr;
    const bool only_here = form && is_table(*form) && form->type() == context.form(reader)->type() &&
                           !context.absorbs[table.index()] && free_only_reader(context, table) == reader;
    if (only_here)
      std::ranges::for_each(leaves_of(context, table), add);
    else
      add(leaf);
  }
  return together;
}

// Logic on three inputs, however many steps it takes: LOP3, twice for 64 bits.
bool three_input_logic(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!is_table(form) || !(is_int32(form) || is_int64(form)) || context.absorbs[id.index()]) return false;
  const InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_table(*user) || user->type() != form.type() || is_scaled_sum(context, reader)) return false;
  std::vector<Operand> together = leaves_together(context, id, reader);
  if (together.size() > 3) together = with_siblings(context, std::move(together), reader);
  if (together.size() > 3 || constants_among(context, together) > 1) return false;
  leaves_of(context, reader) = std::move(together);
  return true;
}

// An input's complement is the input in another table, wherever and how often it is read. Where the input is a table
// itself, that one computes the complement.
bool complement(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::not_ || !(is_int32(form) || is_int64(form)) || context.function.instructions[id].guard ||
      leaves_of(context, id).size() != 1 ||
      context.definition(&leaves_of(context, id)[0]) != context.definition(context.source(id, 0)))
    return false;
  const bool tables = all_readers(context, context.result(id), [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return user && is_table(*user) && user->type() == form.type() && !context.absorbed[reader.index()] &&
           constants_among(context, leaves_together(context, id, reader)) <= 1;
  });
  if (!tables) return false;
  for (InstructionId reader : context.values.readers(context.result(id)))
    leaves_of(context, reader) = leaves_together(context, id, reader);
  return true;
}

// Is a logic result zero? LOP3 says so in a predicate.
bool logic_test(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!is_table(form) || form.type() != ScalarType::b32) return false;
  const InstructionId reader = only_test_of_zero(context, id);
  if (!reader) return false;
  take_over(context, reader);
  return true;
}

// Is the product worth computing again where it is read, since one of its factors is in no register?
bool has_free_factor(const LoweringContext& context, InstructionId id) {
  for (size_t index : {0, 1}) {
    const Operand* factor = context.source(id, index);
    if (context.is_literal(factor)) return true;
    if (factor && factor->is(OperandKind::value) && context.source_of(factor->as_value()) == ValueSource::constant_bank)
      return true;
  }
  return false;
}

// Is it computed once on the uniform datapath, since both factors are loaded there?
bool is_uniform_product(const LoweringContext& context, InstructionId id) {
  if (!has(context.capability, Fact::loaded_parameters)) return false;
  for (size_t index : {0, 1}) {
    const Operand* factor = context.source(id, index);
    if (!factor->is(OperandKind::value) || context.source_of(factor->as_value()) != ValueSource::constant_bank)
      return false;
  }
  return true;
}

// c - a * b: -a first, once for all, unless b is a literal or the steps of a division make it.
void negate_factor(LoweringContext& context, InstructionId product, InstructionId reader) {
  const Operand* minuend = context.source(reader, 0);
  if (minuend->is(OperandKind::value) && minuend->as_value() == context.result(product)) return;
  const Operand* factor = context.source(product, 0);
  if (!factor->is(OperandKind::value) || context.is_literal(context.source(product, 1))) return;
  const InstructionId division = context.definition(factor);
  if (division && context.function.is_opcode(division, Opcode::div) && is_signed(context.form(division)->type()) &&
      context.values.only_reader(factor->as_value()) == product)
    return;
  if (context.negated.insert(factor->as_value()).second) ++context.costs[reader.index()].weight;
}

// The other operand of a sum.
const Operand* addend(const LoweringContext& context, InstructionId sum, ValueId value) {
  const Operand* left = context.source(sum, 0);
  return left->is(OperandKind::value) && left->as_value() == value ? context.source(sum, 1) : left;
}

// Two operands that are in no register: one of them has to be moved, once for all.
void move_factor(LoweringContext& context, InstructionId product, InstructionId reader) {
  const Operand* other = addend(context, reader, context.result(product));
  if (!has_free_factor(context, product) || !other->is(OperandKind::value) ||
      context.source_of(other->as_value()) != ValueSource::constant_bank)
    return;
  for (size_t index : {0, 1}) {
    const Operand* factor = context.source(product, index);
    if (factor->is(OperandKind::value) && context.source_of(factor->as_value()) == ValueSource::constant_bank &&
        context.moved.insert(factor->as_value()).second)
      ++context.costs[reader.index()].weight;
  }
}

// a * b + c: one multiply-add for each sum.
bool integer_multiply_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::mul || !is_int32(form) || !form.has(Modifier::lo)) return false;
  if (context.function.instructions[id].guard) return false;
  const bool first_generation = context.capability < first_generation_end;
  if (first_generation && is_power_of_two(context.source(id, 1))) return false;
  const ValueId value = context.result(id);
  const bool anywhere = !first_generation && has_free_factor(context, id);
  const bool only = value && context.values.readers(value).size() == 1;
  if (!only && is_uniform_product(context, id)) return false;
  const bool fits = all_readers(context, value, [&](InstructionId reader) {
    const Form* user = context.form(reader);
    if (!user || !is_add_or_sub(*user) || !is_int32(*user) || context.absorbs[reader.index()]) return false;
    const InstructionId other = context.definition(addend(context, reader, value));
    if (!only && other && context.function.is_opcode(other, Opcode::mul)) return false; // either, for all is neither
    return anywhere || context.same_block(id, reader);
  });
  if (!fits || (first_generation && !only)) return false;
  for (InstructionId reader : context.values.readers(value)) {
    take_over(context, reader);
    if (has(context.capability, Fact::split_products)) // the last XMAD adds
      context.costs[reader.index()].weight += context.costs[id.index()].weight - 1;
    if (has(context.capability, Fact::moved_factors)) move_factor(context, id, reader);
    if (context.form(reader)->opcode == Opcode::sub && !first_generation) negate_factor(context, id, reader);
  }
  return true;
}

// a * b + c where nothing says that the product is rounded on its own.
bool multiply_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::mul || !is_float(form.type()) || form.has(Modifier::rn) || form.has(Modifier::rz) ||
      form.has(Modifier::rm) || form.has(Modifier::rp) || form.has(Modifier::sat))
    return false;
  InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_add_or_sub(*user) || bit_width(user->type()) != bit_width(form.type())) return false;
  if (!is_float(user->type()) || user->has(Modifier::rn) || user->has(Modifier::rz)) return false;
  take_over(context, reader);
  return true;
}

// -a and |a| are operand modifiers of floating-point instructions; -a also of integer sums.
bool operand_sign(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::neg && form.opcode != Opcode::abs) return false;
  bool floating = is_float(form.type());
  if (!floating && (form.opcode != Opcode::neg || !is_int32(form))) return false;
  ValueId value = context.result(id);
  return all_readers(context, value, [&](InstructionId reader) {
    const Form* user = context.form(reader);
    if (!user) return false;
    if (!floating) return is_add_or_sub(*user) && is_int32(*user);
    return user->kind == InstructionClass::floating_point || user->kind == InstructionClass::comparison;
  });
}

// p = (a < b) and q: one compare. It stands for both, at the compare.
bool predicate_logic(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!is_logic(form) || form.type() != ScalarType::pred) return false;
  for (size_t index : {0, 1}) {
    const Operand* operand = context.source(id, index);
    InstructionId compare = context.definition(operand);
    if (!compare || !context.function.is_opcode(compare, Opcode::setp)) continue;
    if (context.absorbs[compare.index()] || !context.values.only_reader(operand->as_value())) continue;
    if (!context.same_block(compare, id)) continue;
    take_over(context, compare);
    return true;
  }
  return false;
}

// A load of 8 or 16 bits extends by itself.
bool narrow_load(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::cvt || is_float(form.type(0)) || is_float(form.type(1))) return false;
  if (bit_width(form.type(0)) > 32 || bit_width(form.type(1)) > 16) return false;
  InstructionId load = context.definition(context.source(id, 0));
  const Form* loaded = load ? context.form(load) : nullptr;
  if (!loaded || loaded->kind != InstructionClass::load || bit_width(form.type(0)) < 16) return false;
  return bit_width(form.type(1)) > bit_width(loaded->type()) || is_signed(form.type(1)) == is_signed(loaded->type());
}

// The number of bits, a byte or a half, that the instruction cuts out of a word where such a part begins; 0 for others.
int64_t size_of_part(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const Operand* number = context.source(id, 1);
  if (bit_width(form.type()) != 32 || !number || !number->is(OperandKind::integer)) return 0;
  switch (form.opcode) {
  case Opcode::and_:
    return number->immediate == 0xff ? 8 : number->immediate == 0xffff ? 16 : 0;
  case Opcode::shr:
    return is_signed(form.type()) ? 0 : number->immediate == 24 ? 8 : number->immediate == 16 ? 16 : 0;
  case Opcode::bfe: {
    const Operand* length = context.source(id, 2);
    const bool whole =
        length && length->is(OperandKind::integer) && (length->immediate == 8 || length->immediate == 16);
    return whole && !is_signed(form.type()) && number->immediate % length->immediate == 0 ? length->immediate : 0;
  }
  default:
    return 0;
  }
}

// I2F converts a byte or a half of a register; before 9.0 also one that is shifted down and masked.
bool converted_part(LoweringContext& context, InstructionId id) {
  if (context.function.instructions[id].guard) return false;
  const int64_t bits = size_of_part(context, id);
  auto converts = [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return user && user->opcode == Opcode::cvt && user->type(0) == ScalarType::f32 && user->type(1) == ScalarType::u32;
  };
  const Form& form = *context.form(id);
  const InstructionId source = context.definition(context.source(id, 0));
  const bool shifted_first = form.opcode == Opcode::and_ && source && context.function.is_opcode(source, Opcode::shr);
  if (bits != 0 && !(shifted_first && !has(context.capability, Fact::shifted_parts_converted)) &&
      all_readers(context, context.result(id), converts))
    return true;
  const Operand* distance = context.source(id, 1);
  if (form.opcode != Opcode::shr || bit_width(form.type()) != 32 ||
      !has(context.capability, Fact::shifted_parts_converted) || !distance->is(OperandKind::integer))
    return false;
  return all_readers(context, context.result(id), [&](InstructionId reader) {
    const Form* user = context.form(reader);
    if (!user || user->opcode != Opcode::and_ || context.function.instructions[reader].guard) return false;
    const int64_t size = size_of_part(context, reader);
    return size != 0 && distance->immediate % size == 0 && distance->immediate + size <= 32 &&
           all_readers(context, context.result(reader), converts);
  });
}

// min(a + b, c): VIADDMNMX.
bool add_minimum(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!is_add(form) || !is_int32(form) || context.absorbs[id.index()]) return false;
  InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || (user->opcode != Opcode::min && user->opcode != Opcode::max) || !is_int32(*user)) return false;
  take_over(context, reader);
  return true;
}

// min(min(a, b), c): VIMNMX3, which also limits min(a, b) to zero from below; VMNMX joins any two.
bool minimum_of_three(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const bool any = has(context.capability, Fact::video_minimum);
  if (!any && !has(context.capability, Fact::three_input_minimum)) return false;
  if ((form.opcode != Opcode::min && form.opcode != Opcode::max) || !is_int32(form) || context.absorbs[id.index()])
    return false;
  const InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || user->type() != form.type()) return false;
  const bool limits = user->opcode == Opcode::max && is_signed(user->type()) && is_zero(context.source(reader, 1));
  const bool is_extreme = user->opcode == Opcode::min || user->opcode == Opcode::max;
  if (user->opcode != form.opcode && !limits && !(any && is_extreme)) return false;
  take_over(context, reader);
  return true;
}

// min(min(a, b), c) of single precision.
bool float_minimum_of_three(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if ((form.opcode != Opcode::min && form.opcode != Opcode::max) || form.type() != ScalarType::f32 ||
      context.absorbs[id.index()])
    return false;
  const InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || user->opcode != form.opcode || user->type() != form.type()) return false;
  take_over(context, reader);
  return true;
}

constexpr LoweringRule rules[] = {
    {"constant place", constant_place, Fact::after_tesla},
    {"constant index", constant_index, Fact::after_tesla},
    {"constant address offset", constant_address_offset, Fact::always},
    {"equal sum", equal_sum, Fact::always},
    {"wide multiply-add", wide_multiply_add, Fact::wide_sum},
    {"wide product and sum", wide_product_and_sum, Fact::split_wide_sum},
    {"scaled index", scaled_index, Fact::split_products},
    {"wide shift-add", wide_shift_add, Fact::scaled_long_sum},
    {"extended shift-add", extended_shift_add, Fact::scaled_long_sum},
    {"long multiply-add", long_multiply_add, Fact::long_product_sum},
    {"sign test", sign_test, Fact::after_tesla},
    {"extension", extension, Fact::after_tesla},
    {"extension by shift", extension_by_shift, Fact::signs_in_long_sums},
    {"select of compared", select_of_compared, Fact::minimum_of_select},
    {"predicate as number", predicate_as_number, Fact::after_tesla},
    {"funnel shift", funnel_shift, Fact::funnel_shift},
    {"shift by words", shift_by_words, Fact::after_tesla},
    {"logic by words", logic_by_words, Fact::after_tesla},
    {"word test", word_test, Fact::three_input_logic},
    {"select of changed", select_of_changed, Fact::after_tesla, true},
    {"narrow select", narrow_select, Fact::after_tesla},
    {"shift-add", shift_add, Fact::scaled_sum},
    {"shift right and add", shift_right_add, Fact::high_scaled_sum},
    {"bit field", bit_field, Fact::bit_fields},
    {"integer multiply-add", integer_multiply_add, Fact::always},
    {"multiply-add", multiply_add, Fact::always},
    {"add-minimum", add_minimum, Fact::three_input_minimum},
    {"minimum of three", minimum_of_three, Fact::after_tesla},
    {"minimum of three floats", float_minimum_of_three, Fact::three_input_float_minimum},
    {"three-input add", three_input_add, Fact::three_input_sum},
    {"converted part", converted_part, Fact::after_tesla},
    {"complement", complement, Fact::logic_complements},
    {"logic test", logic_test, Fact::logic_tests},
    {"three-input logic", three_input_logic, Fact::three_input_logic},
    {"operand sign", operand_sign, Fact::always},
    {"predicate logic", predicate_logic, Fact::predicate_logic, true},
    {"narrow load", narrow_load, Fact::always, true},
};

} // namespace

std::span<const LoweringRule> lowering_rules() {
  return rules;
}

} // namespace ptxrewrite::ir
