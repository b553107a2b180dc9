#include "ir/machine/fuse/constant_operands.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/fuse/constant_ranges.h"
#include "ir/machine/fuse/operand_slots.h"
#include "ir/machine/fuse/wide_arithmetic.h"
#include "ir/machine/prepare/constant_bank.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ptxrewrite::ir {

bool literal_is_zero(const LoweringContext& context, ValueId value) {
  InstructionId id = context.values.definition(value);
  const Operand* operand = id ? context.source(id, 0) : nullptr;
  return operand && operand->is_constant() && operand->immediate == 0;
}

namespace {

using Places = std::map<BlockId, InstructionId>;

// ptxas 13.0 moves a 32-bit constant again in each block that no other such block dominates, except for addresses.
void move_again(LoweringContext& context, const Places& places) {
  bool first = true;
  const std::set<BlockId> behind = places_behind(context, places, [](BlockId, BlockId) { return true; });
  for (const auto& [block, reader] : places) {
    if (behind.contains(block) || context.absorbed[reader.index()] || std::exchange(first, false)) continue;
    context.move_constant(reader);
  }
}

// The instructions that compute a product or shift: its sums, if they have absorbed it.
std::vector<InstructionId> where_computed(const LoweringContext& context, InstructionId reader) {
  const bool is_product =
      context.function.is_opcode(reader, Opcode::mul) || context.function.is_opcode(reader, Opcode::shl);
  if (!is_product || !context.absorbed[reader.index()]) return {reader};
  const std::span<const InstructionId> sums = context.values.readers(context.result(reader));
  return {sums.begin(), sums.end()};
}

// Adds the cost of loading a constant to its definition if a reader needs it in a register.
void weigh_constant(LoweringContext& context, InstructionId id) {
  ValueId value = context.result(id);
  const Form& form = *context.form(id);
  if (!value) return;
  ValueSource source = context.source_of(value);
  if (source == ValueSource::computed) return;
  InstructionCost& at = context.costs[id.index()];
  at.weight = 0;
  at.pipe = Pipe::issue;
  bool loads = source == ValueSource::constant_bank && has(context.capability, MachineFact::loaded_parameters);
  bool starts = form.opcode == Opcode::ld || form.opcode == Opcode::mov;
  bool in_register = context.values.merges(value), everywhere = in_register, only_addresses = !in_register;
  std::map<BlockId, InstructionId> places; // blocks that read it from a register, with the first such reader
  for (InstructionId reader : context.values.readers(value)) {
    if (!context.needed[reader.index()] || context.uniform[reader.index()] ||
        reads_without_register(context, reader, value, source))
      continue;
    in_register = true;
    everywhere |= context.reads_as_address(reader, value);
    for (InstructionId place : where_computed(context, reader))
      places.try_emplace(context.function.instructions[place].block, place);
    only_addresses &= context.reads_as_address(reader, value);
  }
  if (loads) {
    // It is loaded once, wherever it is read.
    const Operand* operand = context.source(id, 0);
    if (!starts || !operand || operand->is(OperandKind::value)) return;
    bool uniform = bit_width(context.function.values[value].type) <= 32;
    at = uniform ? InstructionCost{0, 1, Pipe::uniform} : InstructionCost{1, 0, Pipe::memory};
    return;
  }
  if (!in_register) return;
  const Operand* named = context.source(id, 0);
  if (only_addresses && form.opcode == Opcode::mov && named && names_local_variable(context, *named)) return;
  if (only_addresses && has(context.capability, MachineFact::uniform_addresses)) {
    at = {0, 1, Pipe::uniform}; // both words
    return;
  }
  at.weight = static_cast<uint16_t>(context.words_of(value));
  if (!everywhere && at.weight == 1) move_again(context, places);
}

bool is_plain_sum(const LoweringContext& context, InstructionId id) {
  const Form* form = id ? context.form(id) : nullptr;
  return form && is_add(*form) && is_int64(*form) && !context.function.instructions[id].guard && context.result(id);
}

constexpr int longest_place = 4; // consecutive sums

// True for an address or integer constant, or a sum of such.
bool is_place(const LoweringContext& context, const Operand* operand, int depth = 0) {
  if (context.is_literal(operand)) return true;
  const InstructionId sum = context.definition(operand);
  return depth < longest_place && is_plain_sum(context, sum) && is_place(context, context.source(sum, 0), depth + 1) &&
         is_place(context, context.source(sum, 1), depth + 1);
}

bool feeds_constant_loads(const LoweringContext& context, ValueId value, int depth = 0) {
  return all_readers(context, value, [&](InstructionId reader) {
    if (context.reads_as_address(reader, value)) return context.form(reader)->space == StateSpace::constant;
    return depth < longest_place && is_plain_sum(context, reader) &&
           feeds_constant_loads(context, context.result(reader), depth + 1);
  });
}

} // namespace

bool is_constant_place(const LoweringContext& context, InstructionId id) {
  return is_plain_sum(context, id) &&
         (is_place(context, context.source(id, 0)) || is_place(context, context.source(id, 1))) &&
         feeds_constant_loads(context, context.result(id));
}

bool constant_place(LoweringContext& context, InstructionId id) {
  if (!is_constant_place(context, id)) return false;
  for (size_t index : {0, 1}) {
    const Operand* rest = context.source(id, index);
    if (rest->is(OperandKind::value) && !is_place(context, rest))
      context.without_constant[context.result(id).index()] = rest->as_value();
  }
  return true;
}

bool reads_without_register(const LoweringContext& context, InstructionId reader, ValueId value, ValueSource source) {
  const Form* form = context.form(reader);
  if (!form) return true;
  if (form->opcode == Opcode::mov || form->opcode == Opcode::cvta) return true; // decided by its own readers
  if (context.reads_as_address(reader, value)) return false;
  if (context.absorbed[reader.index()] && is_constant_place(context, reader)) return true;
  if (is_sign_of_pair(context, reader)) return true; // an extension
  bool is_zero = source == ValueSource::literal && literal_is_zero(context, value);
  if (is_zero) return true;
  return slot_takes(context, reader, value, source);
}

// Neighbouring words of a .const variable are loaded together, once per block.
static void join_constants(LoweringContext& context, int64_t words) {
  std::set<std::tuple<BlockId, VariableId, int64_t>> loaded;
  context.for_each_needed([&](InstructionId id) {
    InstructionCost& at = context.costs[id.index()];
    const Form& form = *context.form(id);
    if (form.space != StateSpace::constant || at.weight + at.uniform != 1 || context.absorbed[id.index()] ||
        !reads_constant_bank(context.function, id))
      return;
    const Operand* address = context.source(id, 0);
    constexpr int64_t word = 4;
    const int64_t place = address->immediate / (words * word);
    if (!loaded.insert({context.function.instructions[id].block, address[1].as_symbol().variable(), place}).second)
      at = {0, 0, Pipe::issue};
  });
}

void weigh_constants(LoweringContext& context) {
  context.for_each_needed([&](InstructionId id) { weigh_constant(context, id); });
  if (const uint16_t words = fact(context.capability, MachineFact::joined_constants)) join_constants(context, words);
}

} // namespace ptxrewrite::ir
