#include "ir/machine/select/split_pointers.h"

#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::ir {

namespace {

// How the two registers of a 64-bit value are written.
enum class Registers : uint8_t {
  pair,  // as a pair: by a load or parameter
  wide,  // by one wide multiply-add
  words, // one after the other
};

bool adds_wide_product(const LoweringContext& context, InstructionId sum) {
  return std::ranges::any_of(std::array<size_t, 2>{0, 1}, [&](size_t index) {
    const InstructionId product = context.definition(context.source(sum, index));
    const Form* form = product ? context.form(product) : nullptr;
    return form && form->opcode == Opcode::mul && form->has(Modifier::wide) && context.absorbed[product.index()];
  });
}

Registers registers_of(const LoweringContext& context, ValueId value) {
  if (context.source_of(value) == ValueSource::constant_bank) return Registers::pair;
  const InstructionId definition = context.values.definition(value);
  const Form* form = definition ? context.form(definition) : nullptr;
  if (!form) return Registers::words;
  if (form->kind == InstructionClass::load) return Registers::pair;
  return is_add(*form) && adds_wide_product(context, definition) ? Registers::wide : Registers::words;
}

// The first access in the loop whose address is the value, with or without a constant.
InstructionId access_with(const LoweringContext& context, ValueId pointer, int depth = 0) {
  for (InstructionId reader : context.values.readers(pointer)) {
    const Form* form = context.form(reader);
    if (!form || !context.needed[reader.index()]) continue;
    if (context.reads_as_address(reader, pointer))
      return form->space == StateSpace::global || form->space == StateSpace::none ? reader : InstructionId();
    const ValueId sum = context.result(reader);
    if (depth < 4 && sum && context.without_constant[sum.index()] == pointer)
      if (InstructionId access = access_with(context, sum, depth + 1)) return access;
  }
  return {};
}

// Where moves get the words of a pointer into a pair.
enum class Moves : uint8_t {
  none,
  in_trips,
  before_too, // before the loop, they take the words of a pair apart
};

Moves moves_of(const LoweringContext& context, BlockId header, size_t place) {
  const Function& function = context.function;
  bool loops = false, pairs = true, wide_start = true, wide_step = true;
  for (EdgeId edge : context.flow.predecessors(header)) {
    const ValueId given = function.arguments(edge)[place];
    const Registers registers = registers_of(context, given);
    if (!context.dominators.dominates(header, function.edges[edge].from)) {
      pairs &= registers != Registers::words;
      wide_start &= registers == Registers::wide;
      continue;
    }
    if (given == function.parameters(header)[place]) continue;
    loops = true;
    wide_step &= registers == Registers::wide;
  }
  if (!loops || (wide_step && pairs)) return Moves::none;
  return wide_start ? Moves::before_too : Moves::in_trips;
}

// The last instruction before the loop; invalid if it has several entries.
InstructionId last_before(const LoweringContext& context, BlockId header) {
  InstructionId last;
  for (EdgeId edge : context.flow.predecessors(header)) {
    const BlockId from = context.function.edges[edge].from;
    if (context.dominators.dominates(header, from)) continue;
    if (last) return {};
    last = context.function.blocks[from].last;
    while (last && !context.form(last))
      last = context.function.instructions[last].previous;
  }
  return last;
}

} // namespace

void weigh_split_pointers(LoweringContext& context, const Lowering& lowering) {
  const Function& function = context.function;
  for (BlockId header : function.layout) {
    if (!context.flow.reachable(header) || lowering.copies_of(header) > 1) continue;
    const std::span<const ValueId> parameters = function.parameters(header);
    uint16_t apart = 0;
    for (size_t place = 0; place < parameters.size(); ++place) {
      const Value& value = function.values[parameters[place]];
      if (is_float(value.type) || bit_width(value.type) != 64 || value.vector_width != 1) continue;
      const InstructionId access = access_with(context, parameters[place]);
      const Moves moves = access ? moves_of(context, header, place) : Moves::none;
      if (moves == Moves::none) continue;
      context.costs[access.index()].weight += 2;
      apart += moves == Moves::before_too ? 2 : 0;
    }
    // A single pointer keeps one of its words.
    if (const InstructionId last = apart > 2 ? last_before(context, header) : InstructionId())
      context.costs[last.index()].weight += apart;
  }
}

} // namespace ptxrewrite::ir
