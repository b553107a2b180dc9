// The limits are rows of heuristics.def: see unrolling.h.
#include "ir/machine/select/unrolling.h"

#include "ir/core/module.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/figures/weights.h"
#include "ir/machine/prepare/constant_bank.h"
#include "ir/machine/select/size_in_loop.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>

namespace ptxrewrite::ir {

namespace {

// A loop that counts from `start` by `step` until `limit` is reached; the counter is a parameter of the first block.
struct CountedLoop {
  std::vector<BlockId> blocks; // header first, the block with the back edge last
  BlockId exit;                // the block through which it is left
  InstructionId increment, compare, branch;
  std::optional<uint64_t> trips; // known if start and limit are literals
  bool launch_limit = false;     // the limit is a literal or lies in the constant bank

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

// The blocks of the loop in reverse post-order; empty if they are too many, if the header does not dominate them, or if
// they contain another loop.
std::vector<BlockId> loop_of(const LoweringContext& context, BlockId header) {
  const Function& function = context.function;
  if (std::ranges::none_of(context.flow.predecessors(header), [&](EdgeId edge) {
        return context.dominators.dominates(header, function.edges[edge].from);
      }))
    return {};
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
      if (to != header && context.flow.position(to) <= context.flow.position(from)) return {};
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

// If value = header parameter + constant in this loop, returns the index of the parameter.
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
  step = form->opcode == Opcode::sub ? -*constant : *constant;
  std::span<const ValueId> parameters = function.parameters(loop.header());
  auto place = std::ranges::find(parameters, base->as_value());
  if (place == parameters.end()) return std::nullopt;
  return static_cast<size_t>(place - parameters.begin());
}

// True for a block without instructions other than a jump.
bool only_jumps(const LoweringContext& context, BlockId block) {
  for (InstructionId id : context.function.instructions_in(block))
    if (context.form(id) && (!context.function.is_opcode(id, Opcode::bra) || context.function.instructions[id].guard))
      return false;
  return true;
}

// The only edge into the loop; invalid if there are several. Blocks that only jump to the header count as their
// predecessors.
EdgeId entering_edge(const LoweringContext& context, const CountedLoop& loop) {
  const Function& function = context.function;
  EdgeId entering;
  for (EdgeId edge : context.flow.predecessors(loop.header())) {
    if (loop.contains(function.edges[edge].from)) continue;
    if (entering) return {};
    entering = edge;
  }
  if (!entering) return {};
  for (BlockId from = function.edges[entering].from; only_jumps(context, from);) {
    const auto before = context.flow.predecessors(from);
    if (before.size() > 1) return {};
    if (before.empty()) break;
    from = function.edges[before.front()].from;
  }
  return entering;
}

// True if the block's code runs on into `last`, without a branch between them.
bool runs_into(const LoweringContext& context, BlockId block, BlockId last) {
  const Function& function = context.function;
  constexpr int most_blocks = 8;
  for (int step = 0; step < most_blocks && block != last; ++step) {
    const auto before = context.flow.predecessors(last);
    if (before.size() != 1) return false;
    const BlockId from = function.edges[before.front()].from;
    if (function.successors(from).size() != 1 && !only_jumps(context, last)) return false;
    last = from;
  }
  return block == last;
}

// The parameter's value in the first trip. ptxas 13.0 knows a number only if it is set right before the loop, behind
// the last branch.
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

// The value of a header parameter in the next trip; other values are returned unchanged.
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
    moved.distance += form->opcode == Opcode::sub ? -*constant : *constant;
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

// True if only jumps follow the exit, such as the one to the header.
bool jumps_over_return(const LoweringContext& context, const CountedLoop& loop) {
  if (loop.exit == loop.blocks.back()) return false;
  return std::ranges::all_of(loop.blocks, [&](BlockId block) {
    if (context.flow.position(block) <= context.flow.position(loop.exit)) return true;
    for (InstructionId id : context.function.instructions_in(block))
      if (context.form(id) && !context.function.is_opcode(id, Opcode::bra)) return false;
    return true;
  });
}

// True if the value is the same in all trips.
bool is_invariant(const LoweringContext& context, const CountedLoop& loop, const Operand* operand) {
  if (!operand->is(OperandKind::value)) return true;
  const ValueId value = operand->as_value();
  return next_of(context, loop, value) == value;
}

std::optional<CountedLoop> counted_loop(const LoweringContext& context, BlockId header) {
  const Function& function = context.function;
  CountedLoop loop;
  loop.blocks = loop_of(context, header);
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
      !function.is_opcode(loop.compare, Opcode::setp) || is_float(context.form(loop.compare)->type()))
    return std::nullopt;
  for (size_t side : {0, 1}) {
    const Operand* tested = context.source(loop.compare, side);
    const Operand* limit = context.source(loop.compare, 1 - side);
    if (!tested || !limit || !tested->is(OperandKind::value)) continue;
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
    if (!loop.trips && counts_away(*context.form(loop.compare), side, step, stays_where_it_holds(context, loop)))
      return std::nullopt;
    return loop;
  }
  return std::nullopt;
}

// Properties of one trip.
struct Body {
  uint32_t work = 0;         // machine instructions that every copy repeats
  uint32_t inductions = 0;   // counters, pointers and constants, shared by all copies
  bool counts = false;       // the work reads a counter other than as an address: each copy adds its offset
  bool points = false;       // a pointer advances, in registers that are moved to a pair for the copies
  uint32_t size = 0;         // as the assembler measures it (size_in_loop.h)
  uint32_t known_size = 0;   // part of the size whose result or address is known in a copy
  uint32_t known = 0;        // number of such instructions; accesses with a varying address count as several
  uint32_t known_work = 0;   // part of the work that copies can omit
  uint32_t global_loads = 0; //
  uint32_t shared_loads = 0; //
  bool fixed = false;        // contains an instruction that is not copied
  bool skips = false;        // contains blocks that not all trips execute
  bool conditional = false;  // contains such blocks, or accesses under a predicate
  bool nested = false;       // such a block branches itself
  // By memory_of: whether the loop loads, and whether it stores to addresses that do not advance by trip.
  std::array<bool, 3> loads{}, stores_anywhere{};
  bool atomics = false, barriers = false;
};

// Disjoint memories: shared, local, and the rest.
size_t memory_of(const Form& form) {
  return is_shared(form.space) ? 0 : form.space == StateSpace::local ? 1 : 2;
}

// Values of a counted loop that are literals in each of its unrolled copies.
class KnownInCopies {
public:
  KnownInCopies(const LoweringContext& context, const CountedLoop& loop) : context_(context), loop_(loop) {
    if (!loop.trips) return;
    std::span<const ValueId> parameters = context.function.parameters(loop.header());
    for (size_t i = 0; i < parameters.size(); ++i) {
      std::optional<Operand> first = first_operand(context, loop, i);
      if (first && is_number(*first)) known_.insert(parameters[i]);
    }
    for (bool fewer = true; fewer;) {
      compute();
      fewer = drop_changed();
    }
  }

  bool operator()(const Operand& operand) const {
    if (!operand.is(OperandKind::value)) return !operand.is(OperandKind::special_register) && is_number(operand);
    if (context_.is_literal(&operand)) return is_number(operand);
    return known_.contains(operand.as_value()) || computed_.contains(operand.as_value());
  }

  bool all_sources(InstructionId id) const {
    for (const Operand& operand : context_.function.operands_of(id))
      if (!operand.is_definition() && !operand.is_group() && !(*this)(operand)) return false;
    return !context_.function.instructions[id].guard;
  }

  // True if the operands are known but differ between copies.
  bool moves(InstructionId id) const {
    for (const Operand& operand : context_.function.operands_of(id))
      if (!operand.is_definition() && operand.is(OperandKind::value) && !context_.is_literal(&operand)) return true;
    return false;
  }

private:
  // Addresses of shared variables may be known.
  bool is_number(Operand operand) const {
    if (has(context_.capability, MachineFact::known_shared_places))
      return context_.is_literal(&operand) || operand.is(OperandKind::symbol);
    for (int step = 0; step < 8 && operand.is(OperandKind::value); ++step) {
      const InstructionId id = context_.definition(&operand);
      if (!id || !context_.function.is_opcode(id, Opcode::mov)) break;
      operand = *context_.source(id, 0);
    }
    return !operand.is(OperandKind::symbol) && context_.is_literal(&operand);
  }

  // Computes the values that follow from the known parameters.
  void compute() {
    computed_.clear();
    for (BlockId block : loop_.blocks)
      for (InstructionId id : context_.function.instructions_in(block)) {
        const ValueId value = context_.result(id);
        const Form* form = context_.form(id);
        if (value && form && form->effects.pure() && all_sources(id)) computed_.insert(value);
      }
  }

  // Drops parameters for which the next trip passes an unknown value. Returns true if there are any.
  bool drop_changed() {
    const Function& function = context_.function;
    std::span<const ValueId> parameters = function.parameters(loop_.header());
    size_t dropped = 0;
    for (EdgeId edge : function.successors(loop_.blocks.back())) {
      if (function.edges[edge].to != loop_.header()) continue;
      for (size_t i = 0; i < parameters.size(); ++i)
        if (!(*this)(Operand::value(function.arguments(edge)[i]))) dropped += known_.erase(parameters[i]);
    }
    return dropped > 0;
  }

  const LoweringContext& context_;
  const CountedLoop& loop_;
  std::set<ValueId> known_;    // parameters of the header
  std::set<ValueId> computed_; // values computed from them
};

// True for instructions that assemblers do not copy: those that converge lanes, wait for memory or call.
bool is_fixed(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.effects.convergent && !form.effects.barrier) return true;
  if (form.kind == InstructionClass::fence || form.effects.call) return true;
  return weight_of(form, context.capability, false).subroutine != Subroutine::none;
}

// True if the address advances by the same distance in each trip.
bool is_stepped(const LoweringContext& context, const CountedLoop& loop, ValueId value) {
  while (ValueId rest = context.without_constant[value.index()])
    value = rest;
  int64_t step = 0;
  InstructionId increment;
  if (stepped_parameter(context, loop, value, step, increment)) return true;
  const ValueId next = next_of(context, loop, value);
  return next != value && stepped_parameter(context, loop, next, step, increment).has_value();
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

// Counts instructions known in copies: see is_straight(). Returns true if copies can omit the instruction.
bool measure_known(const LoweringContext& context, const KnownInCopies& known, InstructionId id, Body& body) {
  const Form& form = *context.form(id);
  const uint32_t size = size_in_loop(context, id);
  const bool accesses = (form.kind == InstructionClass::load || form.kind == InstructionClass::store) &&
                        (is_shared(form.space) || form.space == StateSpace::constant);
  if (size == 0) return false;
  if (accesses) {
    const Operand* place = nullptr;
    for (size_t i = 0; const Operand* operand = context.source(id, i); ++i)
      if (operand->is(OperandKind::address)) place = operand;
    if (!place || place->group_size() != 1 || !known(place[1])) return false;
    const bool moves = place[1].is(OperandKind::value) && !context.is_literal(&place[1]);
    body.known += moves ? heuristic(context.capability, Heuristic::straight_moving_place) + (place->immediate != 0) : 1;
    body.known_size += size;
    return false;
  }
  if (!known.all_sources(id) || !(form.effects.pure() || form.kind == InstructionClass::barrier)) return false;
  ++body.known;
  body.known_size += size;
  return form.effects.pure();
}

// Accounts for a value that changes by a literal per trip.
void measure_induction(const LoweringContext& context, const CountedLoop& loop, InstructionId id, Body& body) {
  const InstructionCost& cost = context.costs[id.index()];
  body.inductions += cost.weight + cost.uniform;
  const Operand* base = context.source(id, 0);
  if (!base->is(OperandKind::value)) return;
  if (bit_width(context.form(id)->type()) == 64) {
    body.points |= cost.uniform == 0 || !has(context.capability, MachineFact::uniform_addresses);
    return;
  }
  for (InstructionId reader : context.values.readers(base->as_value()))
    body.counts |= reader != id && reader != loop.compare && context.needed[reader.index()] &&
                   loop.contains(context.function.instructions[reader].block) &&
                   !context.reads_as_address(reader, base->as_value());
}

void measure(const LoweringContext& context, const CountedLoop& loop, const KnownInCopies& known, InstructionId id,
             Body& body) {
  const Function& function = context.function;
  if (function.instructions[id].kind == InstructionKind::pragma) body.fixed = true;
  const Form* form = context.form(id);
  if (!form || !context.needed[id.index()] || id == loop.branch || id == loop.compare || id == loop.increment) {
    if (id == loop.increment) measure_induction(context, loop, id, body);
    return;
  }
  body.fixed |= is_fixed(context, id);
  body.barriers |= form->effects.barrier;
  const InstructionCost& cost = context.costs[id.index()];
  const auto found = context.constant_moves.find(id);
  const uint32_t moves = found == context.constant_moves.end() ? 0 : found->second;
  const uint32_t weight = cost.weight + cost.uniform - moves;
  body.inductions += moves;
  int64_t step = 0;
  InstructionId increment;
  ValueId value = context.result(id);
  const std::optional<size_t> parameter =
      value ? stepped_parameter(context, loop, value, step, increment) : std::nullopt;
  const bool induction = parameter.has_value();
  const bool skips = function.is_opcode(id, Opcode::bra);
  const bool returns =
      skips && !function.instructions[id].guard && function.instructions[id].block == loop.blocks.back();
  if (induction)
    measure_induction(context, loop, id, body);
  else if (!returns)
    body.work += weight;
  if (skips) return;
  const bool guarded = static_cast<bool>(function.instructions[id].guard);
  if (loop.trips && measure_known(context, known, id, body) && !induction) body.known_work += weight;
  if (induction) {
    ++body.size;
    return;
  }
  if (const uint32_t size = size_in_loop(context, id)) body.size += size + (guarded ? 1 : 0);
  const bool memory = form->kind == InstructionClass::load || form->kind == InstructionClass::store ||
                      form->kind == InstructionClass::atomic;
  if (!memory || form->space == StateSpace::constant || is_param(form->space)) return;
  body.conditional |= guarded;
  const size_t at = memory_of(*form);
  body.atomics |= form->kind == InstructionClass::atomic;
  if (form->kind == InstructionClass::load) body.loads[at] = true;
  if (form->kind == InstructionClass::store && !stores_to_stepped(context, loop, id)) body.stores_anywhere[at] = true;
  if (form->kind != InstructionClass::load) return;
  ++(is_shared(form->space) ? body.shared_loads : body.global_loads);
}

// Number of copies that stay in a loop: as many as fit, or a similar number that divides the trip count.
uint32_t copies_in_loop(const LoweringContext& context, uint32_t size, uint64_t trips) {
  const uint32_t fewest_copies = heuristic(context.capability, Heuristic::copied_fewest);
  const uint32_t fitting =
      std::max(heuristic(context.capability, Heuristic::copied_loop) / std::max(size, 1u), fewest_copies);
  for (uint32_t away = 0; away <= fitting / 5 + 1; ++away) {
    if (trips % (fitting + away) == 0) return fitting + away;
    if (fitting - away >= fewest_copies && trips % (fitting - away) == 0) return fitting - away;
  }
  return fitting;
}

// True for complete unrolling. The limit for the total size grows with the ratio of the rolled loop's executed size to
// the copies' size, which lacks the counter, its test and the branch (three times twenty) and known instructions.
bool is_straight(const LoweringContext& context, uint64_t trips, const Body& body) {
  const uint64_t left = std::max(body.size - std::min(body.known_size, body.size), 1u);
  const uint64_t most = heuristic(context.capability, Heuristic::straight_most),
                 longest = heuristic(context.capability, Heuristic::straight_size);
  if (trips > most || trips * left > most) return false;
  return trips * left * left <=
         longest * (left + heuristic(context.capability, Heuristic::straight_control) +
                    uint64_t{heuristic(context.capability, Heuristic::straight_known)} * body.known);
}

// The maximum size of a trip for which copies pay off if the trip count is unknown: they hide the latency of loads, and
// one wait for global memory hides as much as many.
uint32_t longest_trip(const LoweringContext& context, const Body& body) {
  if (body.global_loads > 0) return heuristic(context.capability, Heuristic::unknown_trips_global_size);
  const uint32_t size = heuristic(context.capability, Heuristic::unknown_trips_size) +
                        body.shared_loads * heuristic(context.capability, Heuristic::unknown_trips_shared_load);
  return body.shared_loads > 0 ? std::min(size, heuristic(context.capability, Heuristic::unknown_trips_most)) : size;
}

// Some lanes leave the loop before others: a trip may load what another lane's trip has stored, and copies would change
// the order. They pay off if other loads can be hoisted, in a loop without branches.
bool pays_for_separate_lanes(const CountedLoop& loop, const Body& body) {
  bool clashes = body.atomics, others = false;
  for (size_t memory = 0; memory < body.loads.size(); ++memory)
    (body.stores_anywhere[memory] ? clashes : others) |= body.loads[memory];
  return !clashes || (others && !body.atomics && loop.blocks.size() == 1);
}

// True for a block that not all trips execute and that branches.
bool is_nested_branch(const LoweringContext& context, const CountedLoop& loop, BlockId block) {
  const InstructionId branch = context.function.terminator(block);
  return branch && context.function.instructions[branch].guard && context.function.successors(block).size() > 1 &&
         !context.dominators.dominates(block, loop.blocks.back());
}

// True for a block that not all trips execute and that is more than a jump.
bool is_skipped(const LoweringContext& context, const CountedLoop& loop, BlockId block) {
  if (context.dominators.dominates(block, loop.blocks.back())) return false;
  for (InstructionId id : context.function.instructions_in(block))
    if (context.form(id) && !context.function.is_opcode(id, Opcode::bra)) return true;
  return false;
}

} // namespace

Unrolling unrolling_of(const LoweringContext& context, const UniformValues& together, BlockId header) {
  std::optional<CountedLoop> loop = counted_loop(context, header);
  if (!loop) return {};
  const KnownInCopies known(context, *loop);
  Body body;
  for (BlockId block : loop->blocks) {
    if (is_skipped(context, *loop, block)) {
      ++body.size;
      body.skips = body.conditional = true;
      // If the exit is in the middle, no block before it may be skipped.
      body.fixed |=
          loop->exit != loop->blocks.back() && context.flow.position(block) < context.flow.position(loop->exit);
    }
    body.nested |= is_nested_branch(context, *loop, block);
    for (InstructionId id : context.function.instructions_in(block))
      measure(context, *loop, known, id, body);
  }
  if (body.fixed) return {};
  Unrolling result;
  result.blocks = loop->blocks;
  const auto limit = [&](Heuristic which) { return heuristic(context.capability, which); };
  const uint32_t control = limit(Heuristic::unknown_trips_control);
  if (!loop->trips) {
    // Four copies, then two, then one for the remaining trips.
    if (body.nested || body.size > longest_trip(context, body)) return {};
    if (!together.branch_is_uniform(loop->exit) && !pays_for_separate_lanes(*loop, body)) return {};
    // All threads have to arrive as often. ptxas sees that of a limit in the constant bank alone, not of one computed
    // from it.
    if ((body.barriers || body.atomics) && !loop->launch_limit) return {};
    if (body.barriers && (body.conditional || !together.branch_is_uniform(loop->exit))) return {};
    result.copies = limit(Heuristic::unknown_trips_copies);
    result.instructions = (result.copies + 2) * body.work + 2 * (body.inductions + control) +
                          limit(Heuristic::unknown_trips_between) +
                          (body.counts ? limit(Heuristic::unknown_trips_counter) : 0) +
                          (body.points ? limit(Heuristic::unknown_trips_pointer) : 0);
    return result;
  }
  if (*loop->trips > 0 && is_straight(context, *loop->trips, body)) {
    const uint64_t all = *loop->trips * (body.work - body.known_work), kept = body.work + body.inductions + control;
    result.instructions = all > kept ? static_cast<uint32_t>(all - kept) : 0;
    result.copies = static_cast<uint32_t>(*loop->trips);
    return result;
  }
  // Otherwise several copies in a loop, if it is a single block.
  if (body.size == 0 || body.size > limit(Heuristic::copied_body) || body.skips) return {};
  result.copies = copies_in_loop(context, body.size, *loop->trips);
  result.instructions = (result.copies - 1) * body.work;
  return result;
}

} // namespace ptxrewrite::ir
