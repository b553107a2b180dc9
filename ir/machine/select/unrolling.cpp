// The limits are rows of heuristics.def: see unrolling.h.
#include "ir/machine/select/unrolling.h"

#include "ir/core/module.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/prepare/overwritten_stores.h"
#include "ir/machine/select/counted_loop.h"
#include "ir/machine/select/size_in_loop.h"

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <set>

namespace ptxrewrite::ir {

namespace {

// A loop and those in it, which are unrolled completely.
struct Nest {
  CountedLoop loop;
  std::vector<const CountedLoop*> inside;

  // The innermost loop around the block.
  const CountedLoop& around(BlockId block) const {
    const CountedLoop* innermost = &loop;
    for (const CountedLoop* inner : inside)
      if (inner->contains(block) && inner->blocks.size() < innermost->blocks.size()) innermost = inner;
    return *innermost;
  }
  // How often a trip of the loop executes the block.
  uint64_t executions(BlockId block) const {
    uint64_t product = 1;
    for (const CountedLoop* inner : inside)
      if (inner->contains(block)) product *= *inner->trips;
    return product;
  }
};

// Properties of one trip.
struct Body {
  uint32_t work = 0;         // machine instructions that every copy repeats
  uint32_t inductions = 0;   // counters, pointers and constants, shared by all copies
  uint32_t last_stores = 0;  // part of the work that only the last copy has
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
  uint64_t controls = 1;     // counters of which the copies need none: its own and those of the loops in a trip
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
  KnownInCopies(const LoweringContext& context, const Nest& nest) : context_(context), nest_(nest), loop_(nest.loop) {
    std::span<const ValueId> parameters = context.function.parameters(loop_.header());
    for (size_t i = 0; loop_.trips && i < parameters.size(); ++i) {
      std::optional<Operand> first = first_operand(context, loop_, i);
      if (first && is_number(*first)) known_.insert(parameters[i]);
    }
    for (const CountedLoop* inner : nest.inside)
      for (ValueId parameter : context.function.parameters(inner->header()))
        known_.insert(parameter);
    if (known_.empty()) return;
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
  // A place in constant memory: the address of a variable, and literals that are added to it.
  bool is_constant_place(Operand operand) const {
    constexpr int most_steps = 8;
    for (int step = 0; step < most_steps && operand.is(OperandKind::value); ++step) {
      const InstructionId id = context_.definition(&operand);
      const bool adds = id && context_.function.is_opcode(id, Opcode::add);
      const Operand* rest = id ? context_.source(id, 0) : nullptr;
      const Operand* added = adds ? context_.source(id, 1) : nullptr;
      if (!rest || !(context_.function.is_opcode(id, Opcode::mov) || (added && added->is(OperandKind::integer))))
        return false;
      operand = *rest;
    }
    if (!operand.is(OperandKind::symbol) || operand.as_symbol().kind() != SymbolRef::Kind::module_variable)
      return false;
    return context_.function.module().variables[operand.as_symbol().variable()].space == StateSpace::constant;
  }

  // Addresses of shared variables may be known.
  bool is_number(Operand operand) const {
    if (is_constant_place(operand)) return true;
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

  // Drops parameters for which an unknown value is passed: for the next trip, and to a loop in a trip, for its first.
  // Returns true if there are any.
  bool drop_changed() {
    size_t dropped = drop_passed(loop_.header(), loop_.blocks.back());
    for (const CountedLoop* inner : nest_.inside)
      for (EdgeId edge : context_.flow.predecessors(inner->header()))
        dropped += drop_passed(inner->header(), context_.function.edges[edge].from);
    return dropped > 0;
  }

  size_t drop_passed(BlockId header, BlockId from) {
    const Function& function = context_.function;
    std::span<const ValueId> parameters = function.parameters(header);
    size_t dropped = 0;
    for (EdgeId edge : function.successors(from)) {
      if (function.edges[edge].to != header) continue;
      for (size_t i = 0; i < parameters.size(); ++i)
        if (!(*this)(Operand::value(function.arguments(edge)[i]))) dropped += known_.erase(parameters[i]);
    }
    return dropped;
  }

  const LoweringContext& context_;
  const Nest& nest_;
  const CountedLoop& loop_;
  std::set<ValueId> known_;    // parameters of headers
  std::set<ValueId> computed_; // values computed from them
};

// True for instructions that assemblers do not copy: those that converge lanes, wait for memory or call.
bool is_fixed(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.effects.convergent && !form.effects.barrier) return true;
  if (form.kind == InstructionClass::fence || form.effects.call) return true;
  return expansion_of(form, context.capability, false).subroutine != Subroutine::none;
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

// True for a load from a known place in constant memory whose reader can name the place instead: one that is not fused
// to another, which may name a place of its own.
bool is_constant_operand(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (has(context.capability, MachineFact::loaded_parameters) || form.opcode != Opcode::ld ||
      form.space != StateSpace::constant || form.vector_width != 1 || bit_width(form.type()) < 32)
    return false;
  const ValueId value = context.result(id);
  const InstructionId reader = value ? context.values.only_reader(value) : InstructionId();
  return reader && !context.absorbed[reader.index()];
}

// Counts instructions known in copies, which a trip executes `times`: see is_straight(). Returns true if copies can
// omit the instruction.
bool measure_known(const LoweringContext& context, const KnownInCopies& known, InstructionId id, uint32_t times,
                   Body& body) {
  const Form& form = *context.form(id);
  const uint32_t size = size_in_loop(context, id);
  const bool accesses = (form.kind == InstructionClass::load || form.kind == InstructionClass::store) &&
                        (is_shared(form.space) || form.space == StateSpace::constant);
  if (size == 0) return form.effects.pure() && known.all_sources(id);
  if (accesses) {
    const Operand* place = nullptr;
    for (size_t i = 0; const Operand* operand = context.source(id, i); ++i)
      if (operand->is(OperandKind::address)) place = operand;
    if (!place || place->group_size() != 1 || !known(place[1])) return false;
    const bool moves = place[1].is(OperandKind::value) && !context.is_literal(&place[1]);
    const uint32_t worth = heuristic(context.capability, Heuristic::straight_moving_place) + (place->immediate != 0);
    body.known += times * (moves ? worth : 1);
    body.known_size += times * size;
    return is_constant_operand(context, id);
  }
  if (!known.all_sources(id) || !(form.effects.pure() || form.kind == InstructionClass::barrier)) return false;
  body.known += times;
  body.known_size += times * size;
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

// Accounts for an access of memory.
void measure_access(const LoweringContext& context, const CountedLoop& loop, InstructionId id, uint32_t times,
                    Body& body) {
  const Form& form = *context.form(id);
  const bool memory = form.kind == InstructionClass::load || form.kind == InstructionClass::store ||
                      form.kind == InstructionClass::atomic;
  if (!memory || form.space == StateSpace::constant || is_param(form.space)) return;
  body.conditional |= static_cast<bool>(context.function.instructions[id].guard);
  const size_t at = memory_of(form);
  body.atomics |= form.kind == InstructionClass::atomic;
  if (form.kind == InstructionClass::load) body.loads[at] = true;
  if (form.kind == InstructionClass::store && !stores_to_stepped(context, loop, id)) body.stores_anywhere[at] = true;
  if (form.kind != InstructionClass::load) return;
  (is_shared(form.space) ? body.shared_loads : body.global_loads) += times;
}

void measure(const LoweringContext& context, const Nest& nest, const KnownInCopies& known, InstructionId id,
             Body& body) {
  const Function& function = context.function;
  const Instruction& instruction = function.instructions[id];
  const CountedLoop& loop = nest.around(instruction.block);
  const bool inside = &loop != &nest.loop;
  const auto times = static_cast<uint32_t>(nest.executions(instruction.block));
  if (instruction.kind == InstructionKind::pragma) body.fixed = true;
  const Form* form = context.form(id);
  if (!form || !context.needed[id.index()] || id == loop.branch || id == loop.compare || id == loop.increment) {
    if (id == loop.increment && !inside) measure_induction(context, loop, id, body);
    return;
  }
  body.fixed |= is_fixed(context, id);
  body.barriers |= form->effects.barrier;
  const InstructionCost& cost = context.costs[id.index()];
  const auto found = context.constant_moves.find(id);
  const uint32_t moves = found == context.constant_moves.end() ? 0 : found->second;
  const uint32_t weight = cost.weight + cost.uniform - moves;
  if (!inside) body.inductions += moves;
  int64_t step = 0;
  InstructionId increment;
  ValueId value = context.result(id);
  const std::optional<size_t> parameter =
      value ? stepped_parameter(context, loop, value, step, increment) : std::nullopt;
  const bool induction = parameter.has_value();
  const bool skips = function.is_opcode(id, Opcode::bra);
  const bool returns = skips && !instruction.guard && instruction.block == loop.blocks.back();
  // Copies of the loops in a trip have omitted it.
  if (inside && !nest.loop.trips && !induction && form->effects.pure() && known.all_sources(id)) return;
  if (induction && !inside) measure_induction(context, loop, id, body);
  if (!induction && !returns) body.work += times * weight;
  if (skips) return;
  if (nest.loop.trips && measure_known(context, known, id, times, body) && !induction)
    body.known_work += times * weight;
  if (induction) {
    body.size += times;
    return;
  }
  if (const uint32_t size = size_in_loop(context, id)) body.size += times * (size + (instruction.guard ? 1 : 0));
  measure_access(context, loop, id, times, body);
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
// the copies' size, which lacks the counters, their tests and branches (three times twenty) and known instructions.
bool is_straight(const LoweringContext& context, uint64_t trips, const Body& body) {
  const uint64_t left = std::max(body.size - std::min(body.known_size, body.size), 1u);
  const uint64_t most = heuristic(context.capability, Heuristic::straight_most),
                 longest = heuristic(context.capability, Heuristic::straight_size);
  if (trips > most || trips * left > most) return false;
  return trips * left * left <=
         longest * (left + heuristic(context.capability, Heuristic::straight_control) * body.controls +
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
bool is_nested_branch(const LoweringContext& context, const Nest& nest, BlockId block) {
  const InstructionId branch = context.function.terminator(block);
  return branch && context.function.instructions[branch].guard && context.function.successors(block).size() > 1 &&
         branch != nest.around(block).branch && !context.dominators.dominates(block, nest.loop.blocks.back());
}

// True for a block that not all trips execute and that is more than a jump.
bool is_skipped(const LoweringContext& context, const CountedLoop& loop, BlockId block) {
  if (context.dominators.dominates(block, loop.blocks.back())) return false;
  for (InstructionId id : context.function.instructions_in(block))
    if (context.form(id) && !context.function.is_opcode(id, Opcode::bra)) return true;
  return false;
}

Body body_of(const LoweringContext& context, const Nest& nest) {
  const KnownInCopies known(context, nest);
  const CountedLoop& loop = nest.loop;
  Body body;
  for (const CountedLoop* inner : nest.inside)
    body.controls += nest.executions(inner->header());
  for (BlockId block : loop.blocks) {
    if (is_skipped(context, loop, block)) {
      body.size += static_cast<uint32_t>(nest.executions(block));
      body.skips = body.conditional = true;
      // If the exit is in the middle, no block before it may be skipped.
      body.fixed |= loop.exit != loop.blocks.back() && context.flow.position(block) < context.flow.position(loop.exit);
    }
    body.nested |= is_nested_branch(context, nest, block);
    for (InstructionId id : context.function.instructions_in(block))
      measure(context, nest, known, id, body);
  }
  if (loop.blocks.size() == 1)
    for (InstructionId store : stores_overwritten_by_next_trip(context.function, loop.header()))
      body.last_stores += context.costs[store.index()].weight;
  body.last_stores = std::min(body.last_stores, body.work);
  return body;
}

// Copies of a loop with an unknown number of trips: four, then two, then one for the remaining trips.
Unrolling copies_for_unknown_trips(const LoweringContext& context, const UniformValues& together,
                                   const CountedLoop& loop, const Body& body) {
  if (body.nested || body.size > longest_trip(context, body)) return {};
  if (!together.branch_is_uniform(loop.exit) && !pays_for_separate_lanes(loop, body)) return {};
  // All threads have to arrive as often. ptxas sees that of a limit in the constant bank alone, not of one computed
  // from it.
  if ((body.barriers || body.atomics) && !loop.launch_limit) return {};
  if (body.barriers && (body.conditional || !together.branch_is_uniform(loop.exit))) return {};
  const auto limit = [&](Heuristic which) { return heuristic(context.capability, which); };
  Unrolling result;
  result.blocks = loop.blocks;
  result.copies = limit(Heuristic::unknown_trips_copies);
  result.instructions = (result.copies + 2) * body.work - result.copies * body.last_stores +
                        2 * (body.inductions + limit(Heuristic::unknown_trips_control)) +
                        limit(Heuristic::unknown_trips_between) +
                        (body.counts ? limit(Heuristic::unknown_trips_counter) : 0) +
                        (body.points ? limit(Heuristic::unknown_trips_pointer) : 0);
  return result;
}

Unrolling unrolling_of(const LoweringContext& context, const UniformValues& together, const Nest& nest) {
  const CountedLoop& loop = nest.loop;
  const Body body = body_of(context, nest);
  if (body.fixed) return {};
  if (!loop.trips) return copies_for_unknown_trips(context, together, loop, body);
  Unrolling result;
  result.blocks = loop.blocks;
  if (*loop.trips > 0 && is_straight(context, *loop.trips, body)) {
    const uint64_t all = *loop.trips * (body.work - body.known_work) - (*loop.trips - 1) * body.last_stores,
                   kept = body.work + body.inductions + heuristic(context.capability, Heuristic::unknown_trips_control);
    result.instructions = all > kept ? static_cast<uint32_t>(all - kept) : 0;
    result.copies = static_cast<uint32_t>(*loop.trips);
    result.straight = true;
    return result;
  }
  // Otherwise several copies in a loop, if it is a single block.
  if (body.size == 0 || body.size > heuristic(context.capability, Heuristic::copied_body) || body.skips) return {};
  result.copies = copies_in_loop(context, body.size, *loop.trips);
  result.instructions = (result.copies - 1) * (body.work - body.last_stores);
  return result;
}

} // namespace

std::vector<Unrolling> unrolled_loops(const LoweringContext& context, const UniformValues& together) {
  std::vector<Unrolling> unrollings;
  StraightLoops straight;
  for (BlockId header : std::views::reverse(context.flow.reverse_postorder())) { // inner loops first
    std::optional<CountedLoop> loop = counted_loop(context, straight, header);
    if (!loop) continue;
    Nest nest{std::move(*loop), {}};
    for (BlockId block : nest.loop.blocks)
      if (const auto inner = straight.find(block); inner != straight.end()) nest.inside.push_back(&inner->second);
    Unrolling unrolling = unrolling_of(context, together, nest);
    if (unrolling.copies == 1 && !unrolling.straight) continue;
    if (unrolling.straight) straight.emplace(header, std::move(nest.loop));
    unrollings.push_back(std::move(unrolling));
  }
  return unrollings;
}

} // namespace ptxrewrite::ir
