// The limits below were found by assembling loops with more and more instructions of one kind until ptxas 13.0 left
// them alone: see unrolling.h.
#include "ir/machine/unrolling.h"

#include "ir/module.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace ptxrewrite::ir {

namespace {

// A loop of one block: its counter runs from `start` by `step` until it has reached `limit`.
struct CountedLoop {
  BlockId block;
  ValueId counter; // block parameter
  InstructionId increment, compare, branch;
  std::optional<uint64_t> trips; // where start and limit are literals
};

std::optional<int64_t> literal(const LoweringContext& context, const Operand* operand) {
  for (int step = 0; operand && step < 8; ++step) {
    if (operand->is(OperandKind::integer)) return operand->immediate;
    InstructionId id = context.definition(operand);
    if (!id || !context.function.is_opcode(id, Opcode::mov)) return std::nullopt;
    operand = context.source(id, 0);
  }
  return std::nullopt;
}

// value = parameter + constant, in this block: the index of that parameter.
std::optional<size_t> stepped_parameter(const LoweringContext& context, BlockId block, ValueId value, int64_t& step,
                                        InstructionId& increment) {
  const Function& function = context.function;
  increment = context.values.definition(value);
  if (!increment || function.instructions[increment].block != block) return std::nullopt;
  const Form* form = context.form(increment);
  if (!form || (form->opcode != Opcode::add && form->opcode != Opcode::sub)) return std::nullopt;
  const Operand* base = context.source(increment, 0);
  std::optional<int64_t> constant = literal(context, context.source(increment, 1));
  if (!constant || !base || !base->is(OperandKind::value)) return std::nullopt;
  step = form->opcode == Opcode::sub ? -*constant : *constant;
  std::span<const ValueId> parameters = function.parameters(block);
  auto place = std::ranges::find(parameters, base->as_value());
  if (place == parameters.end()) return std::nullopt;
  return static_cast<size_t>(place - parameters.begin());
}

// The literal that the parameter has in the first trip.
std::optional<int64_t> first_value(const LoweringContext& context, BlockId block, size_t parameter) {
  const Function& function = context.function;
  std::optional<int64_t> start;
  for (BlockId from : function.layout)
    for (EdgeId edge : function.successors(from)) {
      if (function.edges[edge].to != block || from == block) continue;
      Operand argument = Operand::value(function.arguments(edge)[parameter]);
      std::optional<int64_t> given = literal(context, &argument);
      if (!given || (start && *start != *given)) return std::nullopt;
      start = given;
    }
  return start;
}

std::optional<CountedLoop> counted_loop(const LoweringContext& context, BlockId block) {
  const Function& function = context.function;
  bool to_itself = false;
  for (EdgeId edge : function.successors(block))
    to_itself |= function.edges[edge].to == block;
  if (!to_itself || function.successors(block).size() != 2) return std::nullopt;
  CountedLoop loop;
  loop.block = block;
  loop.branch = function.terminator(block);
  if (!loop.branch || !function.instructions[loop.branch].guard) return std::nullopt;
  loop.compare = context.values.definition(function.instructions[loop.branch].guard);
  if (!loop.compare || function.instructions[loop.compare].block != block ||
      !function.is_opcode(loop.compare, Opcode::setp) || is_float(context.form(loop.compare)->type()))
    return std::nullopt;
  for (size_t side : {0, 1}) {
    const Operand* tested = context.source(loop.compare, side);
    const Operand* limit = context.source(loop.compare, 1 - side);
    if (!tested || !limit || !tested->is(OperandKind::value)) continue;
    int64_t step = 0;
    std::optional<size_t> index = stepped_parameter(context, block, tested->as_value(), step, loop.increment);
    if (!index || step == 0) continue;
    InstructionId limit_definition = context.definition(limit);
    if (limit_definition && function.instructions[limit_definition].block == block) continue;
    loop.counter = function.parameters(block)[*index];
    std::optional<int64_t> start = first_value(context, block, *index), end = literal(context, limit);
    if (start && end) loop.trips = (std::abs(*end - *start) + std::abs(step) - 1) / std::abs(step);
    return loop;
  }
  return std::nullopt;
}

// What one trip is made of.
struct Body {
  uint32_t work = 0;       // instructions that every copy repeats
  uint32_t inductions = 0; // counters and pointers, once for all copies
  uint32_t size = 0;       // of the work, as the assembler measures it: accesses count twice
  uint32_t load = 0;  // in half units of the assembler's estimate: 2 a floating-point one, 4 an access, 20 an atomic
                      // one, 0 a sum of addresses, 5 others
  bool fixed = false; // something that is not copied
};

Body measure(const LoweringContext& context, const CountedLoop& loop) {
  const Function& function = context.function;
  Body body;
  for (InstructionId id : function.instructions_in(loop.block)) {
    if (function.instructions[id].kind == InstructionKind::pragma) body.fixed = true;
    const Form* form = context.form(id);
    if (!form || id == loop.branch || id == loop.compare) continue;
    body.fixed |= form->effects.convergent && !form->effects.barrier;
    const InstructionCost& cost = context.costs[id.index()];
    uint32_t weight = cost.weight + cost.uniform;
    int64_t step = 0;
    InstructionId increment;
    ValueId value = context.result(id);
    bool induction = value && stepped_parameter(context, loop.block, value, step, increment).has_value();
    (induction ? body.inductions : body.work) += weight;
    const bool access = cost.pipe == Pipe::memory && form->space != StateSpace::constant;
    if (!induction) body.size += access ? 2 * weight : weight;
    bool floating = cost.pipe == Pipe::fp32 || cost.pipe == Pipe::fp64;
    bool address = form->opcode == Opcode::add && bit_width(form->type()) == 64 && !floating;
    bool atomic = form->kind == InstructionClass::atomic;
    if (!address) body.load += weight * (atomic ? 20 : floating ? 2 : cost.pipe == Pipe::memory ? 4 : 5);
  }
  return body;
}

} // namespace

Unrolling unrolling_of(const LoweringContext& context, BlockId block) {
  std::optional<CountedLoop> loop = counted_loop(context, block);
  if (!loop) return {};
  Body body = measure(context, *loop);
  if (body.fixed) return {};
  constexpr uint32_t control = 2;
  if (!loop->trips) {
    // Four copies, then two, then one for what is left.
    constexpr uint32_t heaviest = 98, between_copies = 15;
    if (body.load > heaviest) return {};
    return {6 * body.work + 2 * (body.inductions + control) + between_copies, 4};
  }
  // Small enough: no loop is left. Each trip may be longer by what a trip's counter and branch are held for.
  constexpr uint64_t longest_straight = 352, control_of_trip = 10;
  if (*loop->trips > 0 && *loop->trips * body.size <= longest_straight + control_of_trip * *loop->trips) {
    const uint64_t all = *loop->trips * body.work, kept = body.work + body.inductions + control;
    return {all > kept ? static_cast<uint32_t>(all - kept) : 0, static_cast<uint32_t>(*loop->trips)};
  }
  // Else some copies in a loop, four at least.
  constexpr uint32_t longest_loop = 288, longest_body = 72, fewest_copies = 4;
  if (body.size == 0 || body.size > longest_body) return {};
  const uint32_t copies = std::max(longest_loop / body.size, fewest_copies);
  return {(copies - 1) * body.work, copies};
}

} // namespace ptxrewrite::ir
