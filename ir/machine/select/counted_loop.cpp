// Recognition by the loop's parameters: see counted_loop.h.
#include "ir/machine/select/counted_loop.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/constant_bank.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

namespace ptxrewrite::ir {

namespace {

constexpr int most_blocks_between = 8; // empty blocks ahead of a loop

std::optional<int64_t> literal(const LoweringContext& context, const Operand* operand) {
  for (int step = 0; operand && step < 8; ++step) {
    if (operand->is(OperandKind::integer)) return operand->immediate;
    InstructionId id = context.definition(operand);
    if (!id || !context.function.is_opcode(id, Opcode::mov)) return std::nullopt;
    operand = context.source(id, 0);
  }
  return std::nullopt;
}

// The sum or difference of a number and a literal, modulo 2^64.
int64_t moved_by(const Form& form, int64_t number, int64_t literal) {
  const auto distance = static_cast<uint64_t>(literal);
  return static_cast<int64_t>(static_cast<uint64_t>(number) + (form.opcode == Opcode::sub ? 0 - distance : distance));
}

bool is_head(const LoweringContext& context, BlockId block) {
  return std::ranges::any_of(context.flow.predecessors(block), [&](EdgeId edge) {
    return context.dominators.dominates(block, context.function.edges[edge].from);
  });
}

// The blocks of the loop in reverse post-order; empty if they are too many, if the header does not dominate them, or if
// they contain a loop that is not in `straight`.
std::vector<BlockId> loop_of(const LoweringContext& context, const StraightLoops& straight, BlockId header) {
  const Function& function = context.function;
  if (!is_head(context, header)) return {};
  constexpr size_t most_blocks = 64;
  std::vector<BlockId> blocks = {header};
  for (size_t next = 0; next < blocks.size(); ++next)
    for (EdgeId edge : context.flow.predecessors(blocks[next])) {
      const BlockId from = function.edges[edge].from;
      const bool returns = context.dominators.dominates(header, from);
      if (blocks[next] == header && !returns) continue;
      if (!returns || blocks.size() == most_blocks) return {};
      if (std::ranges::find(blocks, from) == blocks.end()) blocks.push_back(from);
    }
  std::ranges::sort(blocks, {}, [&](BlockId block) { return context.flow.position(block); });
  const bool is_loop = std::ranges::any_of(function.successors(blocks.back()),
                                           [&](EdgeId edge) { return function.edges[edge].to == header; });
  if (!is_loop) return {};
  for (BlockId from : blocks)
    for (EdgeId edge : function.successors(from)) {
      const BlockId to = function.edges[edge].to;
      if (to == header || context.flow.position(to) > context.flow.position(from)) continue;
      if (const auto inner = straight.find(to); inner == straight.end() || inner->second.blocks.back() != from)
        return {};
    }
  return blocks;
}

// The only block through which control leaves the loop; invalid if there are several, or several back edges.
BlockId only_exit(const LoweringContext& context, const std::vector<BlockId>& blocks) {
  const Function& function = context.function;
  BlockId exit;
  for (BlockId from : blocks)
    for (EdgeId edge : function.successors(from)) {
      const BlockId to = function.edges[edge].to;
      if (to == blocks.front() && from != blocks.back()) return {};
      if (std::ranges::find(blocks, to) != blocks.end()) continue;
      if (exit) return {};
      exit = from;
    }
  return exit;
}

// The value that `value` is a copy of. Front ends that name the result of each statement copy the counter at the end of
// a trip.
ValueId without_moves(const LoweringContext& context, ValueId value) {
  for (int step = 0; step < 8; ++step) {
    const InstructionId id = context.values.definition(value);
    if (!id || !context.function.is_opcode(id, Opcode::mov) || context.function.instructions[id].guard) return value;
    const Operand* source = context.source(id, 0);
    if (!source || !source->is(OperandKind::value)) return value;
    value = source->as_value();
  }
  return value;
}

} // namespace

std::optional<size_t> stepped_parameter(const LoweringContext& context, const CountedLoop& loop, ValueId value,
                                        int64_t& step, InstructionId& increment) {
  const Function& function = context.function;
  increment = context.values.definition(without_moves(context, value));
  if (!increment || !loop.contains(function.instructions[increment].block)) return std::nullopt;
  const Form* form = context.form(increment);
  if (!form || (form->opcode != Opcode::add && form->opcode != Opcode::sub)) return std::nullopt;
  const Operand* base = context.source(increment, 0);
  std::optional<int64_t> constant = literal(context, context.source(increment, 1));
  if (!constant || !base || !base->is(OperandKind::value)) return std::nullopt;
  step = moved_by(*form, 0, *constant);
  std::span<const ValueId> parameters = function.parameters(loop.header());
  auto place = std::ranges::find(parameters, base->as_value());
  if (place == parameters.end()) return std::nullopt;
  return static_cast<size_t>(place - parameters.begin());
}

namespace {

// True for a block without instructions other than a jump.
bool only_jumps(const LoweringContext& context, BlockId block) {
  for (InstructionId id : context.function.instructions_in(block))
    if (context.form(id) && (!context.function.is_opcode(id, Opcode::bra) || context.function.instructions[id].guard))
      return false;
  return true;
}

} // namespace

EdgeId entering_edge(const LoweringContext& context, const CountedLoop& loop) {
  const Function& function = context.function;
  EdgeId entering;
  for (EdgeId edge : context.flow.predecessors(loop.header())) {
    if (loop.contains(function.edges[edge].from)) continue;
    if (entering) return {};
    entering = edge;
  }
  if (!entering) return {};
  BlockId from = function.edges[entering].from;
  for (int step = 0; step < most_blocks_between && only_jumps(context, from); ++step) {
    const auto before = context.flow.predecessors(from);
    if (before.size() > 1) return {};
    if (before.empty()) break;
    from = function.edges[before.front()].from;
  }
  return entering;
}

namespace {

// True if the block's code runs on into `last`, without a branch between them.
bool runs_into(const LoweringContext& context, BlockId block, BlockId last) {
  const Function& function = context.function;
  for (int step = 0; step < most_blocks_between && block != last; ++step) {
    const auto before = context.flow.predecessors(last);
    if (before.size() != 1) return false;
    const BlockId from = function.edges[before.front()].from;
    if (function.successors(from).size() != 1 && !only_jumps(context, last)) return false;
    last = from;
  }
  return block == last;
}

} // namespace

std::optional<Operand> first_operand(const LoweringContext& context, const CountedLoop& loop, size_t parameter) {
  const EdgeId edge = entering_edge(context, loop);
  if (!edge) return std::nullopt;
  const Operand argument = Operand::value(context.function.arguments(edge)[parameter]);
  const InstructionId definition = context.definition(&argument);
  if (!definition) return std::nullopt;
  const BlockId block = context.function.instructions[definition].block;
  if (!runs_into(context, block, context.function.edges[edge].from)) return std::nullopt;
  return argument;
}

namespace {

// The trip count; the tested value is `ahead` of the counter's value at the start of the trip.
std::optional<uint64_t> trips_of(const LoweringContext& context, const CountedLoop& loop, size_t parameter,
                                 const Operand* limit, int64_t step, int64_t ahead) {
  std::optional<Operand> first = first_operand(context, loop, parameter);
  std::optional<int64_t> start = first ? literal(context, &*first) : std::nullopt, end = literal(context, limit);
  constexpr int64_t no_absolute_value = std::numeric_limits<int64_t>::min();
  int64_t distance = 0;
  if (!start || !end || __builtin_sub_overflow(*end, *start, &distance) ||
      __builtin_sub_overflow(distance, ahead, &distance) || distance == no_absolute_value || step == no_absolute_value)
    return std::nullopt;
  const auto stride = static_cast<uint64_t>(std::abs(step));
  return (static_cast<uint64_t>(std::abs(distance)) + stride - 1) / stride + 1;
}

} // namespace

ValueId next_of(const LoweringContext& context, const CountedLoop& loop, ValueId value) {
  const Function& function = context.function;
  std::span<const ValueId> parameters = function.parameters(loop.header());
  auto place = std::ranges::find(parameters, value);
  if (place == parameters.end()) return value;
  for (EdgeId edge : function.successors(loop.blocks.back()))
    if (function.edges[edge].to == loop.header())
      return function.arguments(edge)[static_cast<size_t>(place - parameters.begin())];
  return value;
}

namespace {

// A header parameter and the constant that has been added to it.
struct Moved {
  ValueId parameter;
  int64_t distance = 0;
};
Moved moved_parameter(const LoweringContext& context, const CountedLoop& loop, ValueId value) {
  std::span<const ValueId> parameters = context.function.parameters(loop.header());
  Moved moved;
  for (int step = 0; step < 4; ++step) {
    value = without_moves(context, value);
    if (std::ranges::find(parameters, value) != parameters.end()) {
      moved.parameter = value;
      return moved;
    }
    const InstructionId id = context.values.definition(value);
    const Form* form = id && loop.contains(context.function.instructions[id].block) ? context.form(id) : nullptr;
    if (!form || (form->opcode != Opcode::add && form->opcode != Opcode::sub)) return {};
    const Operand* base = context.source(id, 0);
    const std::optional<int64_t> constant = literal(context, context.source(id, 1));
    if (!constant || !base || !base->is(OperandKind::value)) return {};
    moved.distance = moved_by(*form, moved.distance, *constant);
    value = base->as_value();
  }
  return {};
}

// Is the operand a literal or read from the constant bank? Hopper and later machines load parameters and variables that
// earlier ones read as operands, which the unroller takes for the same, and the launch's shape, which it does not.
bool is_launch_constant(const LoweringContext& context, const Operand* operand) {
  for (int step = 0; operand && step < 8; ++step) {
    if (operand->is_constant()) return true;
    if (operand->is(OperandKind::special_register))
      return !has(context.capability, MachineFact::loaded_parameters) &&
             (operand->id == static_cast<uint32_t>(SpecialRegister::ntid) ||
              operand->id == static_cast<uint32_t>(SpecialRegister::nctaid));
    const InstructionId id = context.definition(operand);
    if (!id || context.function.instructions[id].guard) return false;
    if (reads_constant_bank(context.function, id)) return true;
    const Form& form = context.function.form_of(id);
    const bool copies = form.opcode == Opcode::mov ||
                        (form.opcode == Opcode::cvt && bit_width(form.type()) == bit_width(form.type(1)) &&
                         is_float(form.type()) == is_float(form.type(1)));
    if (!copies) return false;
    operand = context.source(id, 0);
  }
  return false;
}

// True if the loop continues when the comparison holds.
bool stays_where_it_holds(const LoweringContext& context, const CountedLoop& loop) {
  const Function& function = context.function;
  const BlockId target = function.edges[function.successors(loop.exit).front()].to;
  return loop.contains(target) != function.instructions[loop.branch].guard_negated;
}

// True if the counter moves away from the limit, as in counting up while greater: the test does not bound the trips.
bool counts_away(const Form& compare, size_t side, int64_t step, bool stays) {
  const bool greater =
      compare.has(Modifier::gt) || compare.has(Modifier::ge) || compare.has(Modifier::hi) || compare.has(Modifier::hs);
  const bool less =
      compare.has(Modifier::lt) || compare.has(Modifier::le) || compare.has(Modifier::lo) || compare.has(Modifier::ls);
  return step > 0 && ((side == 0) == stays ? greater : less);
}

// Follows blocks that only jump.
BlockId behind_jumps(const LoweringContext& context, BlockId block) {
  for (int step = 0; step < most_blocks_between; ++step) {
    const std::span<const EdgeId> edges = context.function.successors(block);
    if (edges.size() != 1 || !only_jumps(context, block)) break;
    block = context.function.edges[edges.front()].to;
  }
  return block;
}

// True if the block goes on at an earlier place of the text without returning to the head of a loop.
bool goes_back(const LoweringContext& context, BlockId block) {
  const std::vector<uint32_t>& places = context.layout_places;
  return std::ranges::any_of(context.function.successors(block), [&](EdgeId edge) {
    const BlockId to = context.function.edges[edge].to;
    return places[to.index()] <= places[block.index()] && !context.dominators.dominates(to, block);
  });
}

bool reaches(const Function& function, BlockId from, BlockId to) {
  std::vector<bool> seen(function.blocks.size());
  std::vector<BlockId> open = {from};
  seen[from.index()] = true;
  while (!open.empty()) {
    const BlockId block = open.back();
    open.pop_back();
    if (block == to) return true;
    for (EdgeId edge : function.successors(block))
      if (const BlockId next = function.edges[edge].to; !seen[next.index()]) {
        seen[next.index()] = true;
        open.push_back(next);
      }
  }
  return false;
}

// True for a division or square root of double precision: ptxas expands it, with branches, before it looks at loops.
bool has_expanded_branches(const Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if ((function.is_opcode(id, Opcode::div) || function.is_opcode(id, Opcode::sqrt)) &&
          function.form_of(id).type() == ScalarType::f64)
        return true;
  return false;
}

// ptxas keeps the block order of the text, unless it has expanded branches, a loop's header is not its first block in
// the text, or a backward jump spans a loop without closing one. It then reorders all blocks, in the last case those
// from the jump's target on. Returns the position of the first reordered block; the largest number if there is none.
uint32_t find_reordered_from(const LoweringContext& context) {
  constexpr int most_jumps = 16; // that are looked at: each takes a walk through the function
  const Function& function = context.function;
  const std::vector<uint32_t>& places = context.layout_places;
  if (has_expanded_branches(function)) return 0;
  uint32_t from = std::numeric_limits<uint32_t>::max();
  int jumps = 0;
  for (BlockId block : function.layout) {
    if (!context.flow.reachable(block)) continue;
    for (EdgeId edge : function.successors(block)) {
      const BlockId to = function.edges[edge].to;
      const uint32_t first = places[to.index()], last = places[block.index()];
      if (first > last || context.dominators.dominates(to, block) || ++jumps > most_jumps) continue;
      if (reaches(function, to, block)) return 0;
      const auto begin = function.layout.begin();
      if (first < from &&
          std::any_of(begin + first, begin + last + 1, [&](BlockId head) { return is_head(context, head); }))
        from = first;
    }
  }
  return from;
}

bool is_reordered(const LoweringContext& context, BlockId block) {
  if (!context.reordered_from) context.reordered_from = find_reordered_from(context);
  return context.layout_places[block.index()] >= *context.reordered_from;
}

// True if only jumps follow the exit, such as the one to the header, and the code behind the loop stands next. ptxas
// inverts such an exit to jump to the header.
bool jumps_over_return(const LoweringContext& context, const CountedLoop& loop) {
  if (loop.exit == loop.blocks.back() || is_reordered(context, loop.header())) return false;
  BlockId last = loop.exit;
  for (BlockId block : loop.blocks) {
    if (context.flow.position(block) <= context.flow.position(loop.exit)) continue;
    if (!only_jumps(context, block)) return false;
    last = block;
  }
  for (EdgeId edge : context.function.successors(loop.exit)) {
    BlockId target = context.function.edges[edge].to;
    if (loop.contains(target)) continue;
    const BlockId behind = behind_jumps(context, target);
    const uint32_t jump_place = context.layout_places[last.index()], place = context.layout_places[behind.index()];
    if (place < jump_place) return false;
    const auto begin = context.function.layout.begin();
    if (std::any_of(begin + jump_place + 1, begin + std::max(place, jump_place + 1),
                    [&](BlockId block) { return !only_jumps(context, block); }))
      return false;
    return !goes_back(context, behind);
  }
  return true;
}

// True if the value is the same in all trips.
bool is_invariant(const LoweringContext& context, const CountedLoop& loop, const Operand* operand) {
  if (!operand->is(OperandKind::value)) return true;
  const ValueId value = operand->as_value();
  return next_of(context, loop, value) == value;
}

// A counter in floating point that starts at a literal and advances by one.
struct FloatCounter {
  double start = 0, step = 0, limit = 0;
  bool ahead = false; // the tested value is that of the next trip
  InstructionId increment;
};

std::optional<double> float_literal(const LoweringContext& context, const Operand* operand) {
  for (int step = 0; operand && step < 8; ++step) {
    if (operand->is(OperandKind::float32)) return std::bit_cast<float>(static_cast<uint32_t>(operand->immediate));
    if (operand->is(OperandKind::float64)) return std::bit_cast<double>(operand->immediate);
    const InstructionId id = context.definition(operand);
    if (!id || !context.function.is_opcode(id, Opcode::mov)) return std::nullopt;
    operand = context.source(id, 0);
  }
  return std::nullopt;
}

std::optional<FloatCounter> float_counter(const LoweringContext& context, const CountedLoop& loop, size_t side) {
  const Function& function = context.function;
  const Operand* tested = context.source(loop.compare, side);
  const std::optional<double> limit = float_literal(context, context.source(loop.compare, 1 - side));
  if (!tested || !limit || !tested->is(OperandKind::value)) return std::nullopt;
  const std::span<const ValueId> parameters = function.parameters(loop.header());
  const ValueId value = without_moves(context, tested->as_value());
  for (size_t index = 0; index < parameters.size(); ++index) {
    const ValueId next = without_moves(context, next_of(context, loop, parameters[index]));
    if (value != parameters[index] && value != next) continue;
    const InstructionId id = context.values.definition(next);
    const Form* form = id ? context.form(id) : nullptr;
    if (!form || (form->opcode != Opcode::add && form->opcode != Opcode::sub)) continue;
    const Operand* base = context.source(id, 0);
    const std::optional<double> step = float_literal(context, context.source(id, 1));
    if (!step || !base || !base->is(OperandKind::value) || base->as_value() != parameters[index]) continue;
    const std::optional<Operand> first = first_operand(context, loop, index);
    const std::optional<double> start = first ? float_literal(context, &*first) : std::nullopt;
    if (start) return FloatCounter{*start, form->opcode == Opcode::sub ? -*step : *step, *limit, value == next, id};
  }
  return std::nullopt;
}

bool holds(const Form& compare, double a, double b) {
  if (compare.has(Modifier::lt) || compare.has(Modifier::ltu)) return a < b;
  if (compare.has(Modifier::le) || compare.has(Modifier::leu)) return a <= b;
  if (compare.has(Modifier::gt) || compare.has(Modifier::gtu)) return a > b;
  if (compare.has(Modifier::ge) || compare.has(Modifier::geu)) return a >= b;
  return (a == b) == (compare.has(Modifier::eq) || compare.has(Modifier::equ));
}

// Counts the trips of a loop whose counter is a floating-point number.
std::optional<CountedLoop> float_loop(const LoweringContext& context, CountedLoop loop) {
  const Form& compare = *context.form(loop.compare);
  const bool stays = stays_where_it_holds(context, loop), narrow = bit_width(compare.type()) == 32;
  constexpr uint64_t most_trips = 1 << 13; // more than are unrolled
  for (const size_t side : {0, 1}) {
    const std::optional<FloatCounter> counter = float_counter(context, loop, side);
    if (!counter) continue;
    loop.increment = counter->increment;
    uint64_t trips = 0;
    double value = counter->start;
    for (bool goes_on = true; goes_on && trips < most_trips; ++trips) {
      const double next = narrow ? static_cast<float>(value + counter->step) : value + counter->step;
      const double tested = counter->ahead ? next : value;
      goes_on = stays == (side == 0 ? holds(compare, tested, counter->limit) : holds(compare, counter->limit, tested));
      value = next;
    }
    loop.trips = trips > 1 && loop.exit != loop.blocks.back() ? trips - 1 : trips;
    loop.launch_limit = true;
    return loop;
  }
  return std::nullopt;
}

// The opcode that computes a source of the comparison in the function as written, in a block of the loop or before it.
bool is_written_as(const LoweringContext& context, const CountedLoop& loop, size_t side, Opcode opcode) {
  const Function& function = context.written ? *context.written : context.function;
  const std::span<const Operand> operands = function.operands_of(loop.compare);
  const size_t place = function.form_of(loop.compare).definitions + side;
  if (place >= operands.size() || !operands[place].is(OperandKind::value)) return false;
  const ValueId value = operands[place].as_value();
  const auto defines = [&](InstructionId id) {
    bool found = false;
    for_each_definition(function, id, [&](ValueId defined) { found |= defined == value; });
    return found && function.is_opcode(id, opcode);
  };
  const Operand* now = context.source(loop.compare, side);
  const InstructionId known = now ? context.definition(now) : InstructionId();
  if (known && known.index() < function.instructions.size() && defines(known)) return true;
  for (InstructionId id = function.instructions[loop.compare].previous; id; id = function.instructions[id].previous)
    if (defines(id)) return true;
  return false;
}

// True if ptxas does not recognise the counter: its low word alone is tested, or the limit is a negated register that
// comes first. Preparation removes such conversions.
bool is_hidden(const LoweringContext& context, const CountedLoop& loop, size_t side) {
  if (is_written_as(context, loop, side, Opcode::cvt)) return true;
  if (side == 0 || !is_written_as(context, loop, 0, Opcode::neg)) return false;
  const InstructionId negation = context.definition(context.source(loop.compare, 0));
  const Operand* negated = negation ? context.source(negation, 0) : nullptr;
  return !negated || !negated->is(OperandKind::value) ||
         context.source_of(negated->as_value()) == ValueSource::computed;
}

// True if both are in one block, in this order.
bool is_before(const Function& function, InstructionId first, InstructionId second) {
  if (function.instructions[first].block != function.instructions[second].block) return false;
  InstructionId id = first;
  while (id && id != second)
    id = function.instructions[id].next;
  return static_cast<bool>(id);
}

} // namespace

std::optional<CountedLoop> counted_loop(const LoweringContext& context, const StraightLoops& straight, BlockId header) {
  const Function& function = context.function;
  CountedLoop loop;
  loop.blocks = loop_of(context, straight, header);
  if (loop.blocks.empty()) return std::nullopt;
  loop.exit = only_exit(context, loop.blocks);
  if (!loop.exit || !context.dominators.dominates(loop.exit, loop.blocks.back())) return std::nullopt;
  if (!entering_edge(context, loop)) return std::nullopt;
  loop.branch = function.terminator(loop.exit);
  if (!loop.branch || !function.instructions[loop.branch].guard) return std::nullopt;
  // ptxas 13.0 copies no loop that is left, or goes on, where a predicate is false, and none that ends by jumping over
  // the jump to its start.
  if (function.instructions[loop.branch].guard_negated || jumps_over_return(context, loop)) return std::nullopt;
  loop.compare = context.values.definition(function.instructions[loop.branch].guard);
  if (!loop.compare || !loop.contains(function.instructions[loop.compare].block) ||
      !function.is_opcode(loop.compare, Opcode::setp))
    return std::nullopt;
  if (is_float(context.form(loop.compare)->type())) return float_loop(context, std::move(loop));
  for (size_t side : {0, 1}) {
    const Operand* tested = context.source(loop.compare, side);
    const Operand* limit = context.source(loop.compare, 1 - side);
    if (!tested || !limit || !tested->is(OperandKind::value) || is_hidden(context, loop, side)) continue;
    const Moved counter = moved_parameter(context, loop, tested->as_value());
    if (!counter.parameter) continue;
    const ValueId next = next_of(context, loop, counter.parameter);
    const Moved moved = moved_parameter(context, loop, next);
    const int64_t step = moved.distance;
    if (moved.parameter != counter.parameter || step == 0) continue;
    loop.increment = context.values.definition(without_moves(context, next));
    InstructionId limit_definition = context.definition(limit);
    loop.launch_limit = is_launch_constant(context, limit);
    if (limit_definition && loop.contains(function.instructions[limit_definition].block) && !loop.launch_limit)
      continue;
    if (!is_invariant(context, loop, limit)) continue;
    std::span<const ValueId> parameters = function.parameters(header);
    const auto index = static_cast<size_t>(std::ranges::find(parameters, counter.parameter) - parameters.begin());
    loop.trips = trips_of(context, loop, index, limit, step, counter.distance);
    // The last trip ends where it is left.
    if (loop.trips && *loop.trips > 1 && loop.exit != loop.blocks.back()) --*loop.trips;
    // A test at the end of a trip has to stand behind the increment and, unless the trips are known, to read it.
    if (loop.exit == loop.blocks.back() &&
        ((!loop.trips && counter.distance != step) || is_before(function, loop.compare, loop.increment)))
      return std::nullopt;
    if (!loop.trips && counts_away(*context.form(loop.compare), side, step, stays_where_it_holds(context, loop)))
      return std::nullopt;
    return loop;
  }
  return std::nullopt;
}

} // namespace ptxrewrite::ir
