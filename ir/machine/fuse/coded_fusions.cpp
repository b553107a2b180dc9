// See coded_fusions.h.
#include "ir/machine/fuse/coded_fusions.h"

#include "ir/core/kernel_parameters.h"
#include "ir/core/module.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/fuse/constant_operands.h"
#include "ir/machine/fuse/disjoint.h"
#include "ir/machine/fuse/operand_slots.h"
#include "ir/machine/fuse/wide_arithmetic.h"
#include "ir/machine/prepare/first_generation.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ptxrewrite::ir {

namespace {

using Fact = MachineFact;

// The value without constants that the accesses add.
ValueId strip(const LoweringContext& context, ValueId value) {
  while (ValueId rest = context.without_constant[value.index()])
    value = rest;
  return value;
}

} // namespace

// A sum that was computed before, apart from constants that the accesses add.
bool equal_sum(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!is_add(form) || !(is_int64(form) || is_int32(form)) || context.function.instructions[id].guard) return false;
  const Operand* left = context.source(id, 0);
  const Operand* right = context.source(id, 1);
  ValueId sum = context.result(id);
  if (!left || !right || !sum || !left->is(OperandKind::value) || !right->is(OperandKind::value)) return false;
  ValueId a = strip(context, left->as_value()), b = strip(context, right->as_value());
  // If registers are written again, equal names need not be equal sums.
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

namespace {

bool reads_as_shared_address(const LoweringContext& context, InstructionId reader, ValueId value) {
  return context.reads_as_address(reader, value) && is_shared(context.form(reader)->space);
}

// True if the value is read only in shared addresses, possibly with constants added.
bool is_shared_address(const LoweringContext& context, ValueId value, int depth = 0) {
  return all_readers(context, value, [&](InstructionId reader) {
    if (context.reads_as_address(reader, value)) return reads_as_shared_address(context, reader, value);
    return depth < 4 && context.form(reader) && is_left_to_accesses(context, reader) &&
           is_shared_address(context, context.result(reader), depth + 1);
  });
}

// True for the low word of a product of 64 bits, which accesses of shared memory do not scale themselves.
bool was_wide_product(const LoweringContext& context, InstructionId id) {
  if (!context.written || id.index() >= context.written->instructions.size() ||
      context.written->instructions[id].kind != InstructionKind::real)
    return false;
  const Form& form = context.written->form_of(id);
  return form.opcode == Opcode::mul && (form.has(Modifier::wide) || bit_width(form.type()) == 64);
}

// The value without the constants that are added to it in steps of their own.
ValueId without_places(const LoweringContext& context, ValueId value) {
  constexpr int most_steps = 4;
  for (int i = 0; i < most_steps; ++i) {
    const InstructionId id = context.values.definition(value);
    if (!id || !context.form(id) || !is_add(*context.form(id)) || !is_int32(*context.form(id)) ||
        context.function.instructions[id].guard)
      break;
    const Operand* left = context.source(id, 0);
    const Operand* right = context.source(id, 1);
    if (is_address_constant(context, left)) std::swap(left, right);
    if (!is_address_constant(context, right) || !left || !left->is(OperandKind::value)) break;
    value = left->as_value();
  }
  return value;
}

// True for sums of the same values and of any constants.
bool is_same_sum(const LoweringContext& context, InstructionId a, InstructionId b) {
  if (a == b) return true;
  std::array<std::pair<ValueId, ValueId>, 2> summands;
  for (size_t i = 0; const InstructionId id : {a, b}) {
    const Operand* left = context.source(id, 0);
    const Operand* right = context.source(id, 1);
    if (!is_add(*context.form(id)) || context.function.instructions[id].guard || !left || !right ||
        !left->is(OperandKind::value) || !right->is(OperandKind::value))
      return false;
    summands[i++] =
        std::minmax({without_places(context, left->as_value()), without_places(context, right->as_value())});
  }
  return summands[0] == summands[1];
}

// True if the value is read only for the sum: by it, by the same sums, and by steps whose results are.
bool is_read_for(const LoweringContext& context, ValueId value, InstructionId sum, int depth = 0) {
  constexpr int most_steps = 4;
  return all_readers(context, value, [&](InstructionId reader) {
    if (context.reads_as_address(reader, value) || !context.form(reader) || !context.result(reader)) return false;
    if (context.function.instructions[reader].guard) return false;
    return is_same_sum(context, reader, sum) ||
           (depth < most_steps && is_read_for(context, context.result(reader), sum, depth + 1));
  });
}

// True if the operand is a multiple of 2^scale by its computation, which takes no longer without that factor: products
// and shifts by literals, and sums of these and of places.
bool is_multiple(const LoweringContext& context, const Operand* operand, int64_t scale, int depth = 0) {
  constexpr int most_steps = 4;
  if (context.is_literal(operand)) return is_address_constant(context, operand);
  const InstructionId id = context.definition(operand);
  if (!id || depth == most_steps || context.function.instructions[id].guard) return false;
  const Form& form = *context.form(id);
  if (!is_int32(form) || form.has(Modifier::wide) || form.has(Modifier::hi)) return false;
  const Operand* factor = context.source(id, 1);
  const bool by_literal = factor && factor->is(OperandKind::integer);
  const auto rest_is = [&](size_t index) { return is_multiple(context, context.source(id, index), scale, depth + 1); };
  if (form.opcode == Opcode::shl) return by_literal && factor->immediate >= scale;
  if (form.opcode == Opcode::add) return is_add(form) && rest_is(0) && rest_is(1);
  if (form.opcode != Opcode::mul && form.opcode != Opcode::mad) return false;
  return by_literal && factor->immediate % (int64_t{1} << scale) == 0 && (form.opcode == Opcode::mul || rest_is(2));
}

// True for the sum of a shared address, a << scale and a multiple of 2^scale: the multiple's last instruction adds `a`
// without that factor, and the accesses scale the result. `shifted`: a << scale.
bool is_scaled_by_accesses(const LoweringContext& context, InstructionId id, ValueId shifted, int64_t scale) {
  const ValueId sum = context.result(id);
  if (!is_add(*context.form(id)) || !is_int32(*context.form(id)) || context.function.instructions[id].guard ||
      !is_shared_address(context, sum) || !is_read_for(context, shifted, id))
    return false;
  const Operand* left = context.source(id, 0);
  const bool first = left && left->is(OperandKind::value) && left->as_value() == shifted;
  const Operand* other = first ? context.source(id, 1) : left;
  return other && other->is(OperandKind::value) && !context.is_literal(other) && is_multiple(context, other, scale) &&
         is_read_for(context, without_places(context, other->as_value()), id);
}

} // namespace

// (a << k) + b: LEA, also for an `or` of disjoint bits. Also a shift in a shared address: the scaled addresses of
// targets before 9.0.
bool shift_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::shl || !is_int32(form)) return false;
  const Operand* count = context.source(id, 1);
  if (!context.is_literal(count)) return false;
  ValueId value = context.result(id);
  const bool scales = has(context.capability, Fact::scaled_shared_address) && count->immediate >= 2 &&
                      count->immediate <= 4 && !was_wide_product(context, id);
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
    if (context.needed[reader.index()]) take_over(context, reader);
  if (!scales) return true;
  const auto sum = std::ranges::find_if(context.values.readers(value), [&](InstructionId reader) {
    return context.needed[reader.index()] && !context.reads_as_address(reader, value) &&
           !context.without_constant[context.result(reader).index()];
  });
  if (sum != context.values.readers(value).end() && is_scaled_by_accesses(context, *sum, value, count->immediate))
    context.costs[sum->index()].weight = 0;
  return true;
}

namespace {

// True for one machine instruction that writes one word.
bool is_one_step(const LoweringContext& context, InstructionId id) {
  const ValueId value = context.result(id);
  return value && !context.absorbed[id.index()] && context.costs[id.index()].weight == 1 &&
         context.words_of(value) == 1;
}

bool is_computation(const Form& form) {
  return form.effects.pure() && form.kind != InstructionClass::load && form.kind != InstructionClass::data_movement;
}

// True if the value is in a register of the block's own that only the select, its operands and its predicate read.
bool ends_at(const LoweringContext& context, ValueId old, InstructionId select, InstructionId change) {
  const InstructionId definition = context.values.definition(old);
  if (!definition || !context.form(definition) || !context.same_block(definition, select) ||
      context.source_of(old) != ValueSource::computed || !is_one_step(context, definition) ||
      context.function.instructions[definition].guard)
    return false;
  const InstructionId condition = context.definition(context.source(select, 2));
  const std::span<const InstructionId> readers = context.values.readers(old);
  return readers.size() <= 3 && std::ranges::all_of(readers, [&](InstructionId reader) {
           return reader == select || reader == change || reader == condition;
         });
}

} // namespace

// p ? b : a, without other readers of b: b is computed in place of a, under the predicate, if a is not read afterwards.
bool select_of_changed(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::selp || !context.result(id) || context.values.merges(context.result(id))) return false;
  if (context.absorbs[id.index()]) return false;
  for (size_t index : {0, 1}) {
    const Operand* changed = context.source(id, index);
    const Operand* old = context.source(id, 1 - index);
    if (!changed || !old || !changed->is(OperandKind::value) || !old->is(OperandKind::value)) return false;
    InstructionId change = context.definition(changed);
    if (!change || !context.same_block(change, id) || context.values.only_reader(changed->as_value()) != id) continue;
    if (context.values.merges(old->as_value()) || context.function.instructions[change].guard) continue;
    if (bit_width(form.type()) == 32 && is_computation(*context.form(change)) && is_one_step(context, change) &&
        ends_at(context, old->as_value(), id, change))
      return true;
    if (!is_logic(*context.form(change)) && !is_add_or_sub(*context.form(change))) continue;
    std::span<const InstructionId> readers = context.values.readers(old->as_value());
    if (readers.size() != 2 || std::ranges::find(readers, change) == readers.end()) continue;
    if (std::ranges::any_of(readers, [&](InstructionId reader) { return reader != change && reader != id; })) continue;
    return true;
  }
  return false;
}

namespace {

// One register, one constant bank operand, and 1 or 2 supplied as carries (IADD3.X).
bool is_carried_sum(const LoweringContext& context, const Form& first, const Form& second,
                    std::span<const Operand> summands) {
  if (!is_add(first) || !is_add(second) || !is_int32(first) || summands.size() != 3) return false;
  const auto literals = std::ranges::count_if(summands, [](const Operand& operand) {
    return operand.is(OperandKind::integer) && (operand.immediate == 1 || operand.immediate == 2);
  });
  return literals == 1 && constants_among(context, summands) == 2;
}

} // namespace

// a + b + c: IADD3; two of them for 64 bits.
bool three_input_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const bool wide = is_int64(form);
  if (!is_add_or_sub(form) || !(is_int32(form) || wide) || context.absorbs[id.index()]) return false;
  InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_add_or_sub(*user) || bit_width(user->type()) != bit_width(form.type()) || is_float(user->type()))
    return false;
  std::vector<Operand> summands;
  bool literal = false; // literals are merged to one summand
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

namespace {

// The distinct inputs of a logic instruction, without fusion.
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

// True for a logic operation of up to three inputs, as a truth table.
bool is_table(const Form& form) {
  return is_logic(form) || form.opcode == Opcode::lop3;
}

// The inputs of the instruction's table after the fusions so far.
std::vector<Operand>& leaves_of(LoweringContext& context, InstructionId id) {
  auto [place, first] = context.leaves.try_emplace(id);
  if (first) place->second = own_leaves(context, id);
  return place->second;
}

// The inputs of the reader's table if it absorbs `id`.
std::vector<Operand> leaves_together(LoweringContext& context, InstructionId id, InstructionId reader) {
  std::vector<Operand> together = leaves_of(context, id);
  for (const Operand& leaf : leaves_of(context, reader)) {
    if (leaf.is(OperandKind::value) && leaf.as_value() == context.result(id)) continue;
    if (std::ranges::none_of(together, [&](const Operand& known) { return is_same(known, leaf); }))
      together.push_back(leaf);
  }
  return together;
}

// True for an `or` that becomes a scaled sum, which neither absorbs a table nor is absorbed by one.
bool is_scaled_sum(const LoweringContext& context, InstructionId id) {
  for (size_t index : {0, 1}) {
    const InstructionId shift = context.definition(context.source(id, index));
    if (shift && context.function.is_opcode(shift, Opcode::shl) && context.is_literal(context.source(shift, 1)) &&
        context.values.only_reader(context.result(shift)) == id)
      return is_sum_by_or(context, id);
  }
  return false;
}

// As above, when other tables that only this reader reads are absorbed, too.
std::vector<Operand> with_siblings(LoweringContext& context, const std::vector<Operand>& leaves, InstructionId reader) {
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

} // namespace

// Logic on three inputs, in any number of steps: LOP3; two of them for 64 bits.
bool three_input_logic(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (!is_table(form) || !(is_int32(form) || is_int64(form)) || context.absorbs[id.index()]) return false;
  const InstructionId reader = free_only_reader(context, id);
  const Form* user = reader ? context.form(reader) : nullptr;
  if (!user || !is_table(*user) || user->type() != form.type() || is_scaled_sum(context, reader)) return false;
  std::vector<Operand> together = leaves_together(context, id, reader);
  if (together.size() > 3) together = with_siblings(context, together, reader);
  if (together.size() > 3 || constants_among(context, together) > 1) return false;
  leaves_of(context, reader) = std::move(together);
  return true;
}

// The complement of an input is absorbed by the tables of all readers. If the input is a table itself, that table
// computes the complement.
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
    if (context.needed[reader.index()]) leaves_of(context, reader) = leaves_together(context, id, reader);
  return true;
}

namespace {

// True for a dimension of the block or grid. From Hopper on it is loaded once, not where it is read.
bool is_loaded_dimension(const LoweringContext& context, const Operand* operand) {
  if (!has(context.capability, Fact::loaded_parameters)) return false;
  constexpr int longest = 8; // chain of copies
  for (int step = 0; step < longest && operand && operand->is(OperandKind::value); ++step) {
    const InstructionId copy = context.definition(operand);
    operand = copy && context.function.is_opcode(copy, Opcode::mov) ? context.source(copy, 0) : nullptr;
  }
  return operand && operand->is(OperandKind::special_register);
}

// True if the product is worth recomputing at each reader, because one factor is not in a register.
bool has_free_factor(const LoweringContext& context, InstructionId id) {
  for (size_t index : {0, 1}) {
    const Operand* factor = context.source(id, index);
    if (context.is_literal(factor)) return true;
    if (factor && factor->is(OperandKind::value) &&
        context.source_of(factor->as_value()) == ValueSource::constant_bank && !is_loaded_dimension(context, factor))
      return true;
  }
  return false;
}

// True if it is computed once on the uniform datapath, because both factors are loaded there.
bool is_uniform_product(const LoweringContext& context, InstructionId id) {
  if (!has(context.capability, Fact::loaded_parameters)) return false;
  for (size_t index : {0, 1}) {
    const Operand* factor = context.source(id, index);
    if (!factor->is(OperandKind::value) || context.source_of(factor->as_value()) != ValueSource::constant_bank)
      return false;
  }
  return true;
}

// c - a * b: needs -a, computed once, unless b is a literal or a is negated within a division sequence.
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

// With two operands that are not in registers, one of them is moved to a register, once.
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

} // namespace

// a * b + c: one multiply-add per sum.
bool integer_multiply_add(LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const bool of_halves = form.has(Modifier::wide) && bit_width(form.type()) == 16;
  const bool is_short = form.opcode == Opcode::mul24 && has(context.capability, Fact::separate_lanes);
  if (!is_short && form.opcode != Opcode::mul) return false;
  if (!of_halves && !(is_int32(form) && form.has(Modifier::lo))) return false;
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
    if (!only && other && context.function.is_opcode(other, Opcode::mul)) return false; // ambiguous: absorb neither
    return anywhere || context.same_block(id, reader);
  });
  if (!fits || (first_generation && !only)) return false;
  for (InstructionId reader : context.values.readers(value)) {
    if (!context.needed[reader.index()]) continue;
    take_over(context, reader);
    if (has(context.capability, Fact::split_products)) // the last XMAD adds
      context.costs[reader.index()].weight += context.costs[id.index()].weight - 1;
    else if (is_short) // its factors are extracted once
      context.costs[reader.index()].weight += std::exchange(context.costs[id.index()].weight, uint16_t{1}) - 1;
    if (has(context.capability, Fact::moved_factors) && !is_short) move_factor(context, id, reader);
    if (context.form(reader)->opcode == Opcode::sub && !first_generation) negate_factor(context, id, reader);
  }
  return true;
}

} // namespace ptxrewrite::ir
