// Determined by assembling one to four loads of one, two and four words under a predicate, with and without a store
// under it: see guarded_accesses.h.
#include "ir/machine/select/guarded_accesses.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// The instruction that sets the value to zero in its registers.
InstructionId zero_of(const LoweringContext& context, ValueId value) {
  const InstructionId id = context.values.definition(value);
  if (!id || !context.function.is_opcode(id, Opcode::mov) || context.costs[id.index()].weight == 0) return {};
  const Operand* source = context.source(id, 0);
  for (int step = 0; step < 4 && source && source->is(OperandKind::value); ++step) {
    const InstructionId from = context.definition(source);
    if (!from || !context.function.is_opcode(from, Opcode::mov)) return {};
    source = context.source(from, 0);
  }
  return source && source->is_constant() && source->immediate == 0 ? id : InstructionId();
}

bool loads_memory(const LoweringContext& context, InstructionId id) {
  const Form* form = context.form(id);
  return form && context.needed[id.index()] && form->kind == InstructionClass::load && !form->effects.volatile_result &&
         (form->space == StateSpace::global || form->space == StateSpace::none);
}

size_t words_loaded(const LoweringContext& context, InstructionId id) {
  size_t words = 0;
  for_each_definition(context.function, id, [&](ValueId value) { words += context.words_of(value); });
  return words;
}

// True if the predicate is also combined with others: then ptxas computes both in front of the load.
bool is_combined(const LoweringContext& context, ValueId guard) {
  return std::ranges::any_of(context.values.readers(guard), [&](InstructionId reader) {
    const Form* form = context.form(reader);
    return form && context.needed[reader.index()] && form->kind == InstructionClass::logic &&
           form->type() == ScalarType::pred;
  });
}

uint16_t gathering_of(const LoweringContext& context, const UniformValues& together, ValueId guard) {
  return together.uniform(guard) ? 0 : fact(context.capability, MachineFact::gathering);
}

// Weighs the only load between two barriers of a block.
void weigh_alone(LoweringContext& context, const UniformValues& together, InstructionId load) {
  constexpr size_t long_load = 4; // words
  const ValueId guard = load ? context.function.instructions[load].guard : ValueId();
  if (!guard || words_loaded(context, load) >= long_load) return;
  if (bit_width(context.form(load)->type()) < 32 && is_combined(context, guard)) return;
  context.costs[load.index()].weight =
      static_cast<uint16_t>(context.costs[load.index()].weight + 1 + gathering_of(context, together, guard));
}

void weigh_loads(LoweringContext& context, const UniformValues& together, BlockId block) {
  InstructionId load;
  uint32_t loads = 0;
  const auto end = [&] {
    if (loads == 1) weigh_alone(context, together, load);
    loads = 0;
  };
  for (InstructionId id : context.function.instructions_in(block)) {
    const Form* form = context.form(id);
    if (form && form->effects.barrier) end();
    if (!loads_memory(context, id)) continue;
    load = id;
    ++loads;
  }
  end();
}

bool ends(const LoweringContext& context, BlockId block) {
  const InstructionId last = context.function.terminator(block);
  return last && !context.function.instructions[last].guard &&
         (context.function.is_opcode(last, Opcode::ret) || context.function.is_opcode(last, Opcode::exit));
}

// A guard of these becomes a branch around them: accesses that other lanes may wait for. In shared memory only if the
// lanes that skip them keep an old value in the register of the result.
bool is_branched_around(const LoweringContext& context, InstructionId id) {
  const Form* form = context.form(id);
  if (!form || !context.needed[id.index()] || !context.function.instructions[id].guard) return false;
  if (form->kind == InstructionClass::fence) return true;
  if (form->kind == InstructionClass::load)
    return (form->effects.volatile_result || form->effects.atomic) &&
           (form->space == StateSpace::global || form->space == StateSpace::none);
  if (form->kind != InstructionClass::atomic) return false;
  if (!is_shared(form->space)) return true;
  const ValueId result = context.result(id);
  if (!result || context.values.readers(result).empty()) return false;
  return std::ranges::any_of(context.function.operands_of(id), [](const Operand& operand) {
    return operand.has(OperandFlag::old_value) && operand.is(OperandKind::value);
  });
}

// One branch for neighbours with the same guard. If nothing but the end of the kernel follows, lanes that skip the
// access exit.
void weigh_branches_around(LoweringContext& context, const UniformValues& together, BlockId block) {
  InstructionId last, first_of_last;
  for (InstructionId id : context.function.instructions_in(block)) {
    const Instruction& instruction = context.function.instructions[id];
    if (instruction.kind != InstructionKind::real) continue;
    if (instruction.guard && !is_branched_around(context, id)) continue;
    if (!instruction.guard) {
      const Form* form = context.form(id);
      if (form && (is_memory(*form) || form->effects.barrier) && !is_param(form->space)) last = first_of_last = {};
      continue;
    }
    const bool joins = last && context.function.instructions[last].guard == instruction.guard &&
                       context.function.instructions[last].guard_negated == instruction.guard_negated;
    last = id;
    if (joins) {
      first_of_last = {};
      continue;
    }
    first_of_last = id;
    context.costs[id.index()].weight = static_cast<uint16_t>(context.costs[id.index()].weight + 1 +
                                                             gathering_of(context, together, instruction.guard));
  }
  if (first_of_last && context.function.is_entry && ends(context, block))
    context.costs[first_of_last.index()].weight =
        static_cast<uint16_t>(context.costs[first_of_last.index()].weight -
                              gathering_of(context, together, context.function.instructions[first_of_last].guard));
}

void weigh_end(LoweringContext& context, BlockId block) {
  if (!context.function.is_entry || !ends(context, block)) return;
  for (InstructionId id = context.function.blocks[block].last; id; id = context.function.instructions[id].previous) {
    const Form* form = context.form(id);
    if (!form || !(form->effects.writes_memory || form->effects.atomic || form->effects.barrier)) continue;
    const bool stores = form->kind == InstructionClass::store || form->kind == InstructionClass::atomic;
    if (stores && context.function.instructions[id].guard && !is_branched_around(context, id))
      ++context.costs[id.index()].weight;
    return;
  }
}

} // namespace

void weigh_zero_pairs(LoweringContext& context) {
  if (!context.function.is_ssa || !has(context.capability, MachineFact::zero_pairs)) return;
  if (!context.facts.contents.has_long_floats && !context.facts.contents.keeps_old_values) return;
  std::vector<bool> joined(context.function.instructions.size());
  const auto join = [&](InstructionId id) {
    if (joined[id.index()]) return;
    joined[id.index()] = true;
    --context.costs[id.index()].weight;
  };
  context.for_each_needed([&](InstructionId id) {
    const ValueId result = context.result(id);
    if (result && context.function.values[result].type == ScalarType::f64 && zero_of(context, result) &&
        context.costs[id.index()].weight == 2)
      join(id);
    InstructionId before; // an element of a vector at an even place
    for (const Operand& operand : context.function.operands_of(id)) {
      if (!operand.has(OperandFlag::old_value) || !operand.is(OperandKind::value)) continue;
      const InstructionId zero = zero_of(context, operand.as_value());
      if (context.words_of(operand.as_value()) == 2) {
        if (zero && context.costs[zero.index()].weight == 2) join(zero);
        continue;
      }
      if (before && zero && zero != before) join(zero);
      before = before ? InstructionId() : zero;
    }
  });
}

void weigh_guarded_accesses(LoweringContext& context, const UniformValues& together) {
  if (!has(context.capability, MachineFact::separate_lanes) || !context.facts.contents.guards_memory) return;
  for (BlockId block : context.function.layout) {
    if (!context.flow.reachable(block)) continue;
    weigh_loads(context, together, block);
    weigh_branches_around(context, together, block);
    weigh_end(context, block);
  }
}

} // namespace ptxrewrite::ir
