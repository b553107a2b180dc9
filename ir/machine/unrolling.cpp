// The limits below were found by assembling loops with more and more instructions of one kind, or of two kinds
// together, until ptxas 13.0 left them alone: see unrolling.h. They are the same for sm_75, 80 and 90 but where said.
#include "ir/machine/unrolling.h"

#include "ir/machine/weights.h"
#include "ir/module.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

namespace ptxrewrite::ir {

namespace {

// From `start` by `step` until it has reached `limit`, the counter is a parameter of the first block.
struct CountedLoop {
  std::vector<BlockId> blocks; // the first and the last one, and what lies between
  InstructionId increment, compare, branch;
  std::optional<uint64_t> trips; // where start and limit are literals

  BlockId header() const { return blocks.front(); }
  bool contains(BlockId block) const { return std::ranges::find(blocks, block) != blocks.end(); }
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

// The blocks of a loop in order, if they follow each other but for predicated ones that are skipped; empty if not.
std::vector<BlockId> chain_of(const LoweringContext& context, BlockId header) {
  const Function& function = context.function;
  std::vector<BlockId> blocks;
  constexpr size_t most_blocks = 64;
  for (BlockId now = header; blocks.size() < most_blocks;) {
    blocks.push_back(now);
    std::span<const EdgeId> edges = function.successors(now);
    const bool ends = std::ranges::any_of(edges, [&](EdgeId edge) { return function.edges[edge].to == header; });
    if (ends) return edges.size() == 2 ? blocks : std::vector<BlockId>();
    if (edges.empty() || edges.size() > 2) return {};
    BlockId next = function.edges[edges[0]].to;
    if (edges.size() == 2) {
      BlockId skipped = function.edges[edges[1]].to;
      if (!context.predicated[skipped.index()]) return {};
      blocks.push_back(skipped);
    }
    if (std::ranges::find(blocks, next) != blocks.end()) return {};
    now = next;
  }
  return {};
}

// value = parameter + constant, in this loop: the index of that parameter.
std::optional<size_t> stepped_parameter(const LoweringContext& context, const CountedLoop& loop, ValueId value,
                                        int64_t& step, InstructionId& increment) {
  const Function& function = context.function;
  increment = context.values.definition(value);
  if (!increment || !loop.contains(function.instructions[increment].block)) return std::nullopt;
  const Form* form = context.form(increment);
  if (!form || (form->opcode != Opcode::add && form->opcode != Opcode::sub)) return std::nullopt;
  const Operand* base = context.source(increment, 0);
  std::optional<int64_t> constant = literal(context, context.source(increment, 1));
  if (!constant || !base || !base->is(OperandKind::value)) return std::nullopt;
  step = form->opcode == Opcode::sub ? -*constant : *constant;
  std::span<const ValueId> parameters = function.parameters(loop.header());
  auto place = std::ranges::find(parameters, base->as_value());
  if (place == parameters.end()) return std::nullopt;
  return static_cast<size_t>(place - parameters.begin());
}

// What the parameter is in the first trip, if it is the same whatever way leads into the loop.
std::optional<Operand> first_operand(const LoweringContext& context, const CountedLoop& loop, size_t parameter) {
  const Function& function = context.function;
  std::optional<Operand> start;
  for (BlockId from : function.layout) {
    if (loop.contains(from)) continue;
    for (EdgeId edge : function.successors(from)) {
      if (function.edges[edge].to != loop.header()) continue;
      Operand argument = Operand::value(function.arguments(edge)[parameter]);
      if (start && literal(context, &*start) != literal(context, &argument)) return std::nullopt;
      start = argument;
    }
  }
  return start;
}

std::optional<uint64_t> trips_of(const LoweringContext& context, const CountedLoop& loop, size_t parameter,
                                 const Operand* limit, int64_t step) {
  std::optional<Operand> first = first_operand(context, loop, parameter);
  std::optional<int64_t> start = first ? literal(context, &*first) : std::nullopt, end = literal(context, limit);
  if (!start || !end) return std::nullopt;
  return (std::abs(*end - *start) + std::abs(step) - 1) / std::abs(step);
}

// Upwards until it is no longer greater: a test that has nothing to do with the number of trips.
bool counts_away(const Form& compare, size_t side, int64_t step) {
  const bool greater =
      compare.has(Modifier::gt) || compare.has(Modifier::ge) || compare.has(Modifier::hi) || compare.has(Modifier::hs);
  const bool less =
      compare.has(Modifier::lt) || compare.has(Modifier::le) || compare.has(Modifier::lo) || compare.has(Modifier::ls);
  return step > 0 && (side == 0 ? greater : less);
}

std::optional<CountedLoop> counted_loop(const LoweringContext& context, BlockId header) {
  const Function& function = context.function;
  CountedLoop loop;
  loop.blocks = chain_of(context, header);
  if (loop.blocks.empty()) return std::nullopt;
  loop.branch = function.terminator(loop.blocks.back());
  if (!loop.branch || !function.instructions[loop.branch].guard) return std::nullopt;
  loop.compare = context.values.definition(function.instructions[loop.branch].guard);
  if (!loop.compare || !loop.contains(function.instructions[loop.compare].block) ||
      !function.is_opcode(loop.compare, Opcode::setp) || is_float(context.form(loop.compare)->type()))
    return std::nullopt;
  for (size_t side : {0, 1}) {
    const Operand* tested = context.source(loop.compare, side);
    const Operand* limit = context.source(loop.compare, 1 - side);
    if (!tested || !limit || !tested->is(OperandKind::value)) continue;
    int64_t step = 0;
    std::optional<size_t> index = stepped_parameter(context, loop, tested->as_value(), step, loop.increment);
    if (!index || step == 0) continue;
    InstructionId limit_definition = context.definition(limit);
    if (limit_definition && loop.contains(function.instructions[limit_definition].block)) continue;
    loop.trips = trips_of(context, loop, *index, limit, step);
    if (!loop.trips && counts_away(*context.form(loop.compare), side, step)) return std::nullopt;
    return loop;
  }
  return std::nullopt;
}

// What one trip is made of.
struct Body {
  uint32_t work = 0;         // machine instructions that every copy repeats
  uint32_t inductions = 0;   // counters and pointers, once for all copies
  uint32_t size = 0;         // as the assembler measures it, before it expands and fuses anything
  uint32_t global_loads = 0; //
  uint32_t shared_loads = 0; //
  bool fixed = false;        // something that is not copied
  bool known_places = true;  // shared memory is read where copies could name the place, and no other memory
  // By memory_of: what is loaded, and what is stored elsewhere than at a place that moves on from trip to trip.
  std::array<bool, 3> loads{}, stores_anywhere{};
  bool atomics = false;
};

// Memories that are apart from each other: shared, local, and the rest.
size_t memory_of(const Form& form) {
  return is_shared(form.space) ? 0 : form.space == StateSpace::local ? 1 : 2;
}

// Does it add to an address that nothing else reads? The assembler steps such sums from trip to trip.
bool adds_to_address(const LoweringContext& context, InstructionId id) {
  ValueId sum = context.result(id);
  if (!sum || !context.function.is_opcode(id, Opcode::add) || context.values.merges(sum)) return false;
  return std::ranges::all_of(context.values.readers(sum), [&](InstructionId reader) {
    ValueId next = context.result(reader);
    return context.reads_as_address(reader, sum) || (next && context.without_constant[next.index()]);
  });
}

// An operand of its reader.
bool reads_known_constant(const LoweringContext& context, InstructionId id) {
  const Operand* address = context.source(id, 0);
  return context.form(id)->space == StateSpace::constant && address && address->is(OperandKind::address) &&
         (address[1].is(OperandKind::symbol) || context.is_literal(&address[1]));
}

// Instructions that count more than one before they are expanded.
uint32_t size_of_form(const Form& form, const InstructionCost& cost, bool literal) {
  const bool is_long = bit_width(form.type()) == 64, is_short = bit_width(form.type()) == 16;
  switch (form.opcode) {
  case Opcode::div:
  case Opcode::rem: {
    if (is_float(form.type()) || is_long) break;
    const uint32_t quotient = literal ? (is_signed(form.type()) ? 23 : 18) : (is_signed(form.type()) ? 27 : 21);
    const uint32_t saved = is_signed(form.type()) && literal ? 3 : 2;
    return form.opcode == Opcode::div ? quotient : quotient - saved;
  }
  case Opcode::shl:
    return is_short ? 3 : is_long && !literal ? 2 : 1;
  case Opcode::shr:
    return is_short || (is_long && !literal) ? 2 : 1;
  case Opcode::mul:
    return is_short && !form.has(Modifier::wide) && !is_float(form.type()) ? 3 : 1;
  case Opcode::bfe:
  case Opcode::bfi:
    return literal ? 1 : 2;
  case Opcode::clz:
    return is_long ? 8 : 2;
  case Opcode::popc:
    return is_long ? 5 : 1;
  case Opcode::rcp:
    return cost.weight; // scales small numbers once
  default:
    break;
  }
  // Logarithms and roots that scale small numbers.
  constexpr uint32_t scaled = 4;
  return cost.pipe == Pipe::special && cost.weight >= scaled ? cost.weight + cost.weight / 2 : 1;
}

uint32_t size_of(const LoweringContext& context, InstructionId id) {
  constexpr uint32_t access = 2, elected = 11; // lanes elect one that does the atomic operation for all
  const Form& form = *context.form(id);
  const InstructionCost& cost = context.costs[id.index()];
  ValueId result = context.result(id);
  if (result && (context.source_of(result) != ValueSource::computed || context.without_constant[result.index()]))
    return 0;
  switch (form.kind) {
  case InstructionClass::data_movement:
  case InstructionClass::address_conversion:
  case InstructionClass::barrier:
    return 0;
  case InstructionClass::atomic:
    return is_shared(form.space) || cost.weight > access ? elected : access;
  case InstructionClass::load:
  case InstructionClass::store:
    return is_param(form.space) || reads_known_constant(context, id) ? 0 : access;
  default:
    break;
  }
  if (adds_to_address(context, id)) return 0;
  // Products that integer sums take over.
  if (form.opcode == Opcode::mul && form.has(Modifier::lo) && context.absorbed[id.index()]) return 0;
  if (form.opcode == Opcode::cvt && cost.weight == 0 && !context.absorbed[id.index()]) return 0;
  if (cost.pipe == Pipe::memory) return access;
  const Operand* last = nullptr;
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i)
    last = operand;
  return size_of_form(form, cost, context.is_literal(last));
}

// Is the operand a literal in each trip, given that the trips are counted?
bool known_in_each_trip(const LoweringContext& context, const CountedLoop& loop, const Operand& operand,
                        int depth = 0) {
  if (context.is_literal(&operand) || operand.is(OperandKind::symbol)) return true;
  if (!operand.is(OperandKind::value) || depth > 4) return false;
  const Function& function = context.function;
  std::span<const ValueId> parameters = function.parameters(loop.header());
  auto place = std::ranges::find(parameters, operand.as_value());
  if (place != parameters.end()) {
    std::optional<Operand> first = first_operand(context, loop, static_cast<size_t>(place - parameters.begin()));
    return first && context.is_literal(&*first);
  }
  InstructionId id = context.definition(&operand);
  const Form* form = id ? context.form(id) : nullptr;
  if (!form || form->opcode != Opcode::add || !loop.contains(function.instructions[id].block)) return false;
  return known_in_each_trip(context, loop, *context.source(id, 0), depth + 1) &&
         known_in_each_trip(context, loop, *context.source(id, 1), depth + 1);
}

bool reads_known_place(const LoweringContext& context, const CountedLoop& loop, InstructionId id) {
  const Form& form = *context.form(id);
  const Operand* address = context.source(id, 0);
  return form.opcode == Opcode::ld && is_shared(form.space) && address && address->is(OperandKind::address) &&
         address->group_size() == 1 && known_in_each_trip(context, loop, address[1]);
}

// Assemblers do not copy what gathers lanes, waits for memory or calls.
bool is_fixed(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.effects.convergent && !form.effects.barrier) return true;
  if (form.kind == InstructionClass::fence || form.effects.call) return true;
  return weight_of(form, context.capability, false).subroutine != Subroutine::none;
}

// Does the place move on by the same distance in each trip?
bool is_stepped(const LoweringContext& context, const CountedLoop& loop, ValueId value) {
  while (ValueId rest = context.without_constant[value.index()])
    value = rest;
  int64_t step = 0;
  InstructionId increment;
  if (stepped_parameter(context, loop, value, step, increment)) return true;
  const Function& function = context.function;
  std::span<const ValueId> parameters = function.parameters(loop.header());
  auto place = std::ranges::find(parameters, value);
  if (place == parameters.end()) return false;
  for (EdgeId edge : function.successors(loop.blocks.back())) {
    if (function.edges[edge].to != loop.header()) continue;
    ValueId next = function.arguments(edge)[static_cast<size_t>(place - parameters.begin())];
    return stepped_parameter(context, loop, next, step, increment).has_value();
  }
  return false;
}

bool stores_to_stepped(const LoweringContext& context, const CountedLoop& loop, InstructionId id) {
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
    if (!operand->is(OperandKind::address)) continue;
    const Operand& base = operand[1];
    if (is_shared(context.form(id)->space) && context.is_literal(&base)) return true;
    return operand->group_size() >= 1 && base.is(OperandKind::value) && is_stepped(context, loop, base.as_value());
  }
  return false;
}

void measure(const LoweringContext& context, const CountedLoop& loop, InstructionId id, Body& body) {
  const Function& function = context.function;
  if (function.instructions[id].kind == InstructionKind::pragma) body.fixed = true;
  const Form* form = context.form(id);
  if (!form || !context.needed[id.index()] || id == loop.branch || id == loop.compare || id == loop.increment) {
    if (id == loop.increment) body.inductions += context.costs[id.index()].weight + context.costs[id.index()].uniform;
    return;
  }
  body.fixed |= is_fixed(context, id);
  const InstructionCost& cost = context.costs[id.index()];
  const uint32_t weight = cost.weight + cost.uniform;
  int64_t step = 0;
  InstructionId increment;
  ValueId value = context.result(id);
  const bool induction = value && stepped_parameter(context, loop, value, step, increment).has_value();
  (induction ? body.inductions : body.work) += weight;
  const bool skips = function.is_opcode(id, Opcode::bra);
  if (skips) return;
  const bool guarded = function.instructions[id].guard || context.predicated[function.instructions[id].block.index()];
  if (induction) return;
  if (const uint32_t size = size_of(context, id)) body.size += size + (guarded ? 1 : 0);
  const bool memory = form->kind == InstructionClass::load || form->kind == InstructionClass::store ||
                      form->kind == InstructionClass::atomic;
  if (!memory || form->space == StateSpace::constant || is_param(form->space)) return;
  body.known_places &= reads_known_place(context, loop, id);
  const size_t at = memory_of(*form);
  body.atomics |= form->kind == InstructionClass::atomic;
  if (form->kind == InstructionClass::load) body.loads[at] = true;
  if (form->kind == InstructionClass::store && !stores_to_stepped(context, loop, id)) body.stores_anywhere[at] = true;
  if (form->kind != InstructionClass::load) return;
  ++(is_shared(form->space) ? body.shared_loads : body.global_loads);
}

// Copies in a loop: as many as fit, a little more or less where that divides the trips.
uint32_t copies_in_loop(uint32_t size, uint64_t trips) {
  constexpr uint32_t longest_loop = 288, fewest_copies = 4;
  const uint32_t fitting = std::max(longest_loop / std::max(size, 1u), fewest_copies);
  for (uint32_t away = 0; away <= fitting / 5 + 1; ++away) {
    if (trips % (fitting + away) == 0) return fitting + away;
    if (fitting - away >= fewest_copies && trips % (fitting - away) == 0) return fitting - away;
  }
  return fitting;
}

// How long a trip may be for the copies to pay, where nobody knows how many trips there are: they hide the latency of
// loads, and one wait for global memory hides as much as many.
uint32_t longest_trip(const Body& body) {
  constexpr uint32_t without_loads = 18, with_global_loads = 46, of_shared_load = 5, longest = 96;
  if (body.global_loads > 0) return with_global_loads;
  return body.shared_loads > 0 ? std::min(without_loads + of_shared_load * body.shared_loads, longest) : without_loads;
}

// Some lanes leave the loop before others: what a trip loads may be what another lane's trip has stored, and copies
// would change which of them comes first. They pay where other loads can be moved up, in a loop without branches.
bool pays_for_separate_lanes(const CountedLoop& loop, const Body& body) {
  bool clashes = body.atomics, others = false;
  for (size_t memory = 0; memory < body.loads.size(); ++memory)
    (body.stores_anywhere[memory] ? clashes : others) |= body.loads[memory];
  return !clashes || (others && !body.atomics && loop.blocks.size() == 1);
}

} // namespace

Unrolling unrolling_of(const LoweringContext& context, const UniformValues& together, BlockId header) {
  std::optional<CountedLoop> loop = counted_loop(context, header);
  if (!loop) return {};
  Body body;
  for (BlockId block : loop->blocks) {
    // What is chosen between where a predicated block has been skipped.
    if (block != header) body.size += static_cast<uint32_t>(context.function.parameters(block).size());
    for (InstructionId id : context.function.instructions_in(block))
      measure(context, *loop, id, body);
  }
  if (body.fixed) return {};
  Unrolling result;
  result.blocks = loop->blocks;
  constexpr uint32_t control = 2;
  if (!loop->trips) {
    // Four copies, then two, then one for what is left.
    constexpr uint32_t between_copies = 15;
    if (body.size > longest_trip(body)) return {};
    if (!together.branch_is_uniform(loop->blocks.back()) && !pays_for_separate_lanes(*loop, body)) return {};
    result.instructions = 6 * body.work + 2 * (body.inductions + control) + between_copies;
    result.copies = 4;
    return result;
  }
  // Small enough: no loop is left. Each trip may be longer by what a trip's counter and branch are held for.
  constexpr uint64_t longest_straight = 352, control_of_trip = 10, longest_in_all = 930;
  // Where the copies' loads have literal addresses, what ends it is how long the whole function becomes.
  constexpr uint64_t longest_of_known_places = 2000;
  const uint64_t trips = *loop->trips, size = trips * body.size;
  const bool straight = size <= std::min(longest_straight + control_of_trip * trips, longest_in_all);
  const bool known = context.capability < 90 && body.shared_loads > 0 && body.known_places &&
                     trips * body.work <= longest_of_known_places;
  if (trips > 0 && (straight || known)) {
    const uint64_t all = trips * body.work, kept = body.work + body.inductions + control;
    result.instructions = all > kept ? static_cast<uint32_t>(all - kept) : 0;
    result.copies = static_cast<uint32_t>(trips);
    return result;
  }
  // Else some copies in a loop.
  constexpr uint32_t longest_body = 72;
  if (body.size == 0 || body.size > longest_body) return {};
  result.copies = copies_in_loop(body.size, trips);
  result.instructions = (result.copies - 1) * body.work;
  return result;
}

} // namespace ptxrewrite::ir
