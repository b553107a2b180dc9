// Control flow in the analysis: joins, values read after their loop, trip counts, facts from dominating branches.
#include "ir/analysis/linear/linear_state.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <utility>

namespace ptxrewrite::ir {

using State = LinearForms::State;

namespace {

constexpr size_t region_limit = 2000; // blocks examined for one join
constexpr unsigned fact_limit = 64;   // dominating branches examined for one block

// The outgoing edge of `from` through which edge `incoming` is reached; nullopt if it is not unique.
std::optional<unsigned> side_of(const State& state, BlockId from, EdgeId incoming) {
  auto successors = state.function.successors(from);
  for (unsigned i = 0; i < successors.size(); ++i)
    if (successors[i] == incoming) return i;
  BlockId source = state.function.edges[incoming].from;
  for (unsigned i = 0; i < successors.size(); ++i) {
    BlockId target = state.function.edges[successors[i]].to;
    if (state.flow.predecessors(target).size() == 1 && state.dominators.dominates(target, source)) return i;
  }
  return std::nullopt;
}

} // namespace

// --- branches ---

InstructionId State::terminator(BlockId block) const {
  InstructionId last = function.blocks[block].last;
  while (last && function.instructions[last].kind != InstructionKind::real)
    last = function.instructions[last].previous;
  return last;
}

ValueId State::branch_predicate(BlockId block) const {
  if (function.successors(block).size() != 2) return {};
  ValueId selector = branch_selector(block);
  return selector && function.instructions[terminator(block)].guard == selector ? selector : ValueId();
}

ValueId State::branch_selector(BlockId block) const {
  InstructionId last = terminator(block);
  if (!last) return {};
  const Form& form = function.form_of(last);
  if (!form.effects.branch || form.effects.call) return {};
  ValueId selector;
  if (ValueId guard = function.instructions[last].guard) {
    if (function.successors(block).size() <= 2 && form.opcode == Opcode::bra) selector = guard;
  } else if (form.opcode == Opcode::brx) {
    for (const Operand& operand : function.operands_of(last))
      if (operand.is(OperandKind::value) && !selector) selector = operand.as_value();
  }
  // A register that is never written implies nothing: each thread and each read may see different bits.
  return selector && !function.values[selector].is_undefined ? selector : ValueId();
}

Level State::branch_level(BlockId block) const {
  if (function.successors(block).size() < 2) return Level::launch;
  ValueId selector = branch_selector(block);
  if (!selector) return Level::thread;
  // Optimistic: an unvisited predicate selects nothing yet.
  LinearFormId id = const_cast<State*>(this)->form_in(selector, block);
  return id ? level(id) : Level::launch;
}

bool State::branch_varies(BlockId block) const {
  if (function.successors(block).size() < 2) return false;
  ValueId selector = branch_selector(block);
  if (!selector) return true;
  LinearFormId id = const_cast<State*>(this)->form_in(selector, block);
  return id && varies(id);
}

BlockId State::condition_block(const FormCondition& condition) const {
  if (condition.kind == FormCondition::Kind::compare) return function.instructions[condition.instruction].block;
  return def_use.definition(condition.value).block;
}

Level State::condition_level(const FormCondition& condition) const {
  State& self = const_cast<State&>(*this);
  Level most = Level::launch;
  BlockId block = condition_block(condition);
  switch (condition.kind) {
  case FormCondition::Kind::predicate:
    return level(value_form[condition.value]);
  case FormCondition::Kind::compare:
    for_each_use(function, condition.instruction, [&](ValueId value) {
      LinearFormId id = self.form_in(value, block);
      most = std::max(most, id ? level(id) : Level::thread);
    });
    return most;
  case FormCondition::Kind::edge: {
    const JoinRegion& region = self.join_region(block);
    if (region.too_large) return Level::thread;
    for (BlockId branch : region.branches)
      most = std::max(most, branch_level(branch));
    return most;
  }
  }
  return Level::thread;
}

// --- joins ---

const State::JoinRegion& State::join_region(BlockId join) {
  auto [found, fresh] = regions.try_emplace(join);
  JoinRegion& region = found->second;
  if (!fresh) return region;
  BlockId top = dominators.immediate_dominator(join);
  if (!top) {
    region.too_large = true;
    return region;
  }
  // A number per region instead of a set of blocks: a switch with many cases has as many large regions.
  region_visits.resize(function.blocks.size(), 0);
  const auto visit = static_cast<uint32_t>(regions.size());
  std::vector<BlockId> work{top};
  region_visits[top.index()] = region_visits[join.index()] = visit;
  auto take = [&](BlockId block) {
    if (!flow.reachable(block) || std::exchange(region_visits[block.index()], visit) == visit) return;
    work.push_back(block);
  };
  for (EdgeId edge : flow.predecessors(join))
    if (flow.position(function.edges[edge].from) < flow.position(join)) take(function.edges[edge].from);
  for (size_t i = 1; i < work.size(); ++i) {
    if (work.size() > region_limit) {
      region.too_large = true;
      break;
    }
    for (EdgeId edge : flow.predecessors(work[i]))
      take(function.edges[edge].from);
  }
  for (BlockId block : work)
    if (function.successors(block).size() > 1) region.branches.push_back(block);
  return region;
}

// Groups edges by the form of their argument, in at most four groups. Empty if there are more.
static std::vector<unsigned> group_edges(const std::vector<LinearFormId>& argument_forms,
                                         std::vector<LinearFormId>& distinct) {
  std::vector<unsigned> groups;
  for (LinearFormId id : argument_forms) {
    auto found = std::ranges::find(distinct, id);
    groups.push_back(static_cast<unsigned>(found - distinct.begin()));
    if (found == distinct.end()) distinct.push_back(id);
  }
  if (distinct.size() > 4) groups.clear();
  return groups;
}

namespace {

struct FormsBySide {
  LinearFormId taken; // if the predicate is true
  LinearFormId not_taken;
};

// The forms that arrive from either side of the branch at the end of `top`; nullopt if the edges of a side disagree.
std::optional<FormsBySide> forms_by_side(State& state, BlockId top, std::span<const EdgeId> edges,
                                         std::span<const LinearFormId> forms) {
  std::array<LinearFormId, 2> by_side;
  for (size_t i = 0; i < edges.size(); ++i) {
    auto side = side_of(state, top, edges[i]);
    if (!side || (by_side[*side] && by_side[*side] != forms[i])) return std::nullopt;
    by_side[*side] = forms[i];
  }
  if (!by_side[0] || !by_side[1]) return std::nullopt;
  // Successor 0 is the branch target, taken if the guard is true.
  bool negated = state.function.instructions[state.terminator(top)].guard_negated;
  return FormsBySide{by_side[negated ? 1 : 0], by_side[negated ? 0 : 1]};
}

} // namespace

LinearFormId State::join(BlockId block, unsigned index, std::span<const EdgeId> edge_list) {
  ValueId parameter = function.parameters(block)[index];
  unsigned width = bit_width(function.values[parameter].type);
  std::vector<LinearFormId> argument_forms;
  std::vector<EdgeId> known_edges;
  for (EdgeId edge : edge_list) {
    if (!flow.reachable(function.edges[edge].from)) continue;
    LinearFormId id = form_in(function.arguments(edge)[index], block);
    if (!id) continue;
    if (at(id).width != width) return any(width);
    argument_forms.push_back(id);
    known_edges.push_back(edge);
  }
  if (argument_forms.empty()) return {};
  std::vector<LinearFormId> distinct;
  std::vector<unsigned> groups = group_edges(argument_forms, distinct);
  // Equal form ids mean equal values unless the form is opaque.
  bool opaque = !at(distinct[0]).has_coefficients() && at(distinct[0]).kind != ValueClass::mod_linear &&
                at(distinct[0]).kind != ValueClass::divergent_linear;
  if (distinct.size() == 1 && (!opaque || edge_list.size() == 1)) return distinct[0];

  const JoinRegion& region = join_region(block);
  Level join_level = region.too_large ? Level::thread : Level::launch, operand_level = Level::launch;
  bool join_varies = region.too_large;
  for (BlockId branch : region.branches) {
    join_level = std::max(join_level, branch_level(branch));
    join_varies |= branch_varies(branch);
  }
  for (LinearFormId id : distinct) {
    operand_level = std::max(operand_level, level(id));
    join_varies |= varies(id);
  }
  join_varies &= bool(loops.innermost(block));

  // If a single two-way branch decides, its predicate is the condition.
  BlockId top = dominators.immediate_dominator(block);
  ValueId selector = top ? branch_predicate(top) : ValueId();
  bool all_known = known_edges.size() == edge_list.size();
  auto sides = selector && all_known ? forms_by_side(*this, top, known_edges, argument_forms) : std::nullopt;
  bool decided = sides.has_value();
  LinearFormId if_true, if_false, predicate;
  if (decided) {
    if_true = sides->taken;
    if_false = sides->not_taken;
    predicate = form_in(selector, block);
  }
  if (join_level == Level::launch && decided && predicate)
    if (auto condition = scalar(predicate)) {
      LinearFormId selected = select(*condition, if_true, if_false);
      if (at(selected).kind != ValueClass::any) return selected;
    }
  if (join_level == Level::launch && operand_level == Level::launch)
    return uniform(pool.value(parameter, width, join_varies));
  if (join_level <= Level::block && operand_level <= Level::block) return block_uniform(width, join_varies);
  // One opaque form on several edges means different values.
  if (groups.empty() || distinct.size() == 1 || known_edges.size() != edge_list.size()) return any(width);

  FormCondition condition;
  if (decided && if_true != if_false) {
    condition.kind = FormCondition::Kind::predicate;
    condition.value = selector;
    return choose(condition, if_true, if_false);
  }
  // Parameters of one block that group its edges in the same way share their condition.
  uint64_t signature = 1;
  for (unsigned group : groups)
    signature = signature * 4 + group;
  if (groups.size() > 30) return any(width);
  condition.kind = FormCondition::Kind::edge;
  condition.value = edge_group_owner.try_emplace({function.parameters(block)[0], signature}, parameter).first->second;
  LinearFormId low = choose(condition, distinct[1], distinct[0]);
  if (distinct.size() <= 2) return low;
  LinearFormId high = distinct.size() == 4 ? choose(condition, distinct[3], distinct[2]) : distinct[2];
  condition.bit = 1;
  return choose(condition, high, low);
}

std::vector<unsigned> State::edge_groups(ValueId block_parameter) const {
  const DefinitionSite& site = def_use.definition(block_parameter);
  assert(site.is_parameter());
  std::vector<LinearFormId> argument_forms, distinct;
  for (EdgeId edge : flow.predecessors(site.block))
    argument_forms.push_back(const_cast<State*>(this)->form_in(function.arguments(edge)[site.parameter], site.block));
  return group_edges(argument_forms, distinct);
}

// --- values read after their loop ---

LinearFormId State::form_in(ValueId value, BlockId block) {
  LinearFormId id = value_form[value];
  if (!id || loops.loops().empty()) return id;
  return leave_loops(id, value, block);
}

LinearFormId State::leave_loops(LinearFormId id, ValueId value, BlockId block) {
  const DefinitionSite& site = def_use.definition(value);
  if (!site.block) return id;
  for (LoopId loop = loops.innermost(site.block); loop && !loops.contains(loop, block);) {
    LoopId parent = loops.loops()[loop].parent;
    LinearForm form = at(id);
    bool has_offset = false;
    for (const LoopOffset& offset : form.loops())
      has_offset |= offset.loop == loop;
    if (form.kind == ValueClass::divergent_linear)
      for (LinearFormId alternative : form.alternatives)
        if (alternative)
          for (const LoopOffset& offset : at(alternative).loops())
            if (offset.loop == loop) return any(form.width);
    if (form.kind == ValueClass::mod_linear && at(form.dividend).loop_count) return any(form.width);
    // A condition evaluated in the loop is that of the last trip, which may differ between threads.
    bool chosen_inside = false;
    for (unsigned i = 0; i < form.condition_count; ++i)
      chosen_inside |= loops.contains(loop, condition_block(form.conditions[i]));
    if (!has_offset && !form.varies && !chosen_inside) {
      loop = parent;
      continue;
    }
    Level exit_level = Level::launch;
    for (EdgeId exit : loops.loops()[loop].exits)
      exit_level = std::max(exit_level, branch_level(function.edges[exit].from));
    if (exit_level == Level::thread) return any(form.width);
    if (chosen_inside) {
      loop = parent;
      continue;
    }
    Level total = std::max(exit_level, level(id));
    std::optional<ExpressionId> trips;
    if (has_offset && exit_level == Level::launch) {
      TripBound bound = find_trip_bound(loop);
      if (bound.known && bound.exact) trips = exact_trips(bound, loop);
    }
    if (trips) {
      for (unsigned i = 0; i < form.loop_count; ++i) {
        if (form.loop_offsets[i].loop != loop) continue;
        ExpressionId count = *trips;
        count = form.width <= 64 && form.width < pool.width(count) ? pool.truncate(count, form.width) : count;
        form.coefficients[0] = pool.add(form.coefficients[0], pool.multiply(form.loop_offsets[i].step, count));
        form.loop_offsets[i].step = pool.literal(form.width, 0);
      }
      id = classified(form);
    } else if (total == Level::launch) {
      id = uniform(pool.value(value, form.width, bool(parent)));
    } else if (total == Level::block) {
      id = block_uniform(form.width, bool(parent));
    } else {
      return any(form.width);
    }
    loop = parent;
  }
  return id;
}

// --- trip counts ---

std::optional<Relation> relation_of(const Form& form) {
  bool is_unsigned_type = is_unsigned(form.type()) || is_bit_type(form.type());
  auto less = is_unsigned_type ? Comparison::less_unsigned : Comparison::less_signed;
  auto less_equal = is_unsigned_type ? Comparison::less_equal_unsigned : Comparison::less_equal_signed;
  if (form.has(Modifier::eq)) return Relation{Comparison::equal, false};
  if (form.has(Modifier::ne)) return Relation{Comparison::not_equal, false};
  if (form.has(Modifier::lt)) return Relation{less, false};
  if (form.has(Modifier::le)) return Relation{less_equal, false};
  if (form.has(Modifier::gt)) return Relation{less, true};
  if (form.has(Modifier::ge)) return Relation{less_equal, true};
  if (form.has(Modifier::lo)) return Relation{Comparison::less_unsigned, false};
  if (form.has(Modifier::ls)) return Relation{Comparison::less_equal_unsigned, false};
  if (form.has(Modifier::hi)) return Relation{Comparison::less_unsigned, true};
  if (form.has(Modifier::hs)) return Relation{Comparison::less_equal_unsigned, true};
  return std::nullopt;
}

Relation opposite(Relation relation) {
  switch (relation.comparison) {
  case Comparison::equal:
    return {Comparison::not_equal, false};
  case Comparison::not_equal:
    return {Comparison::equal, false};
  case Comparison::less_signed:
    return {Comparison::less_equal_signed, !relation.reversed};
  case Comparison::less_equal_signed:
    return {Comparison::less_signed, !relation.reversed};
  case Comparison::less_unsigned:
    return {Comparison::less_equal_unsigned, !relation.reversed};
  case Comparison::less_equal_unsigned:
    return {Comparison::less_unsigned, !relation.reversed};
  }
  return relation;
}

State::PredicateTest State::test_of(ValueId predicate) const {
  PredicateTest test;
  constexpr unsigned most_copies = 8;
  for (unsigned copies = 0; copies < most_copies; ++copies) {
    const InstructionId id = def_use.definition(predicate).instruction;
    if (!id || function.instructions[id].kind != InstructionKind::real || function.instructions[id].guard) return {};
    if (function.is_opcode(id, Opcode::setp)) {
      test.setp = id;
      return test;
    }
    const bool negates = function.is_opcode(id, Opcode::not_);
    const auto operands = function.operands_of(id);
    if ((!negates && !function.is_opcode(id, Opcode::mov)) || operands.size() != 2 ||
        !operands[1].is(OperandKind::value))
      return {};
    test.negated ^= negates;
    predicate = operands[1].as_value();
  }
  return {};
}

TripBound State::find_trip_bound(LoopId loop_id) {
  const Loop& loop = loops.loops()[loop_id];
  TripBound bound;
  for (EdgeId exit : loop.exits) {
    BlockId from = function.edges[exit].from;
    auto successors = function.successors(from);
    bool every_trip = true;
    for (EdgeId back : loop.back_edges)
      every_trip &= dominators.dominates(from, function.edges[back].from);
    ValueId predicate = branch_predicate(from);
    // A test in an inner loop executes more than once per trip.
    if (!every_trip || !predicate || loops.innermost(from) != loop_id) continue;
    const auto [definition, negated] = test_of(predicate);
    if (!definition) continue;
    const Instruction& compare = function.instructions[definition];
    const Form& form = function.form_of(definition);
    auto operands = function.operands_of(definition);
    if ((!is_integer(form.type()) && !is_bit_type(form.type())) || operands.size() != 3 ||
        !operands[0].is(OperandKind::value) || loops.innermost(compare.block) != loop_id)
      continue;
    auto relation = relation_of(form);
    if (!relation) continue;
    unsigned width = bit_width(form.type());
    std::array<LinearFormId, 2> sides;
    for (size_t i = 0; i < 2; ++i) {
      if (operands[i + 1].is(OperandKind::integer))
        sides[i] = uniform(pool.literal(width, static_cast<uint64_t>(operands[i + 1].immediate)));
      else if (operands[i + 1].is(OperandKind::value))
        sides[i] = form_in(operands[i + 1].as_value(), compare.block);
    }
    if (!sides[0] || !sides[1] || at(sides[0]).width != width || at(sides[1]).width != width) continue;
    auto offset_of = [&](LinearFormId id) {
      for (const LoopOffset& offset : at(id).loops())
        if (offset.loop == loop_id) return offset.step;
      return ExpressionId();
    };
    if (offset_of(sides[1])) std::swap(sides[0], sides[1]), relation->reversed ^= true;
    ExpressionId step = offset_of(sides[0]);
    auto limit = scalar(sides[1]);
    if (!step || !limit || pool[*limit].varies) continue;
    LinearForm tested = at(sides[0]);
    if (tested.loop_count != 1) continue;
    tested.loop_count = 0;
    tested.loop_offsets[0] = {};
    // The target, successor 0, is taken if the guard is true.
    bool leaves_when = (successors[0] == exit) != negated;
    if (function.instructions[terminator(from)].guard_negated) leaves_when = !leaves_when;
    if (leaves_when) *relation = opposite(*relation);
    if (relation->comparison == Comparison::equal) continue;
    bound = {true, loop.exits.size() == 1, relation->comparison, relation->reversed, classified(tested), step, *limit};
    if (bound.exact) return bound;
  }
  return bound;
}

// The trip in which the exit test first fails, as a 64-bit expression; nullopt if it is not launch-uniform.
std::optional<ExpressionId> State::exact_trips(const TripBound& bound, LoopId loop) {
  auto start = scalar(bound.tested);
  auto step_literal = pool.literal_value(bound.step);
  if (!start || !step_literal || pool[*start].varies) return std::nullopt;
  unsigned width = pool.width(bound.limit);
  int64_t step = signed_value(*step_literal, width);
  if (bound.relation == Comparison::not_equal) {
    ExpressionId distance = step > 0 ? pool.subtract(bound.limit, *start) : pool.subtract(*start, bound.limit);
    uint64_t size = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    if ((size & (size - 1)) != 0) return std::nullopt;
    unsigned shift = static_cast<unsigned>(std::countr_zero(size));
    if (pool.trailing_zeros(distance) < shift) return std::nullopt;
    ExpressionId count = pool.zero_extend(distance, 64);
    return pool.binary(ExpressionKind::shift_right_unsigned, count, pool.literal(32, shift));
  }
  if (step != (bound.reversed ? -1 : 1)) return std::nullopt;
  bool is_signed = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_equal_signed;
  bool or_equal = bound.relation == Comparison::less_equal_signed || bound.relation == Comparison::less_equal_unsigned;
  if (width == 64) return std::nullopt; // the distance may need 65 bits
  ExpressionId lower = bound.reversed ? bound.limit : *start, upper = bound.reversed ? *start : bound.limit;
  ExpressionId distance = pool.subtract(pool.extend(upper, 64, is_signed), pool.extend(lower, 64, is_signed));
  if (or_equal) distance = pool.add(distance, pool.literal(64, 1));
  ExpressionId zero = pool.literal(64, 0);
  // A guard before the loop often implies that the distance is not negative.
  ExpressionId not_negative =
      pool.compare(is_signed ? Comparison::less_equal_signed : Comparison::less_equal_unsigned, lower, upper);
  if (pool.literal_value(not_negative) == std::optional<uint64_t>(1)) return distance;
  for (ExpressionId fact : facts_in(loops.loops()[loop].header).conditions)
    if (fact == not_negative) return distance;
  return pool.binary(ExpressionKind::maximum_signed, distance, zero);
}

// --- facts ---

// True if the block has a single incoming edge, not counting back edges from blocks that it dominates.
bool State::entered_once(BlockId block) const {
  unsigned entries = 0;
  for (EdgeId edge : flow.predecessors(block))
    entries += !dominators.dominates(block, function.edges[edge].from);
  return entries == 1;
}

BlockId State::nearest_branch_side(BlockId block) {
  if (branch_sides.empty()) {
    branch_sides.resize(function.blocks.size());
    for (BlockId below : flow.reverse_postorder()) { // dominators first
      BlockId above = dominators.immediate_dominator(below);
      if (!above) continue;
      bool is_side = branch_predicate(above) && entered_once(below);
      branch_sides[below.index()] = is_side ? below : branch_sides[above.index()];
    }
  }
  return branch_sides[block.index()];
}

const State::Facts& State::facts_in(BlockId block) {
  // No facts are cached while forms may still change.
  if (auto found = facts.find(block); found != facts.end() && settled) return found->second;
  Facts collected;
  BlockId above;
  unsigned budget = fact_limit;
  for (BlockId below = nearest_branch_side(block); below && budget; below = nearest_branch_side(above), --budget) {
    above = dominators.immediate_dominator(below);
    auto successors = function.successors(above);
    ValueId selector = branch_predicate(above);
    BlockId taken = function.edges[successors[0]].to;
    if (taken == function.edges[successors[1]].to || (below != taken && below != function.edges[successors[1]].to))
      continue;
    bool holds = below == taken;
    if (function.instructions[terminator(above)].guard_negated) holds = !holds;
    LinearFormId id = form_in(selector, above);
    if (!id) continue;
    if (auto condition = scalar(id); condition && !pool[*condition].varies) {
      collected.conditions.push_back(holds ? *condition : pool.logical_not(*condition));
      continue;
    }
    // A comparison of an index with a literal, such as tid.x < 16.
    const auto [definition, negated] = test_of(selector);
    if (!definition) continue;
    if (negated) holds = !holds;
    auto operands = function.operands_of(definition);
    if (operands.size() != 3 || !operands[1].is(OperandKind::value) || !operands[2].is(OperandKind::integer)) continue;
    auto relation = relation_of(function.form_of(definition));
    LinearFormId tested = value_form[operands[1].as_value()];
    if (!relation || !tested || at(tested).loop_count || !at(tested).has_coefficients() || operands[2].immediate < 0)
      continue;
    if (!holds) *relation = opposite(*relation);
    unsigned place = 0;
    for (unsigned i = 1; i < form_index::count; ++i)
      if (tested == index_form(i, at(tested).width)) place = i;
    if (!place || at(tested).width < 32) continue;
    Int128 literal = operands[2].immediate;
    bool strict = relation->comparison == Comparison::less_signed || relation->comparison == Comparison::less_unsigned;
    Interval range{0, signed_range(64).high};
    if (relation->comparison == Comparison::equal)
      range = {literal, literal};
    else if (relation->comparison == Comparison::not_equal)
      continue;
    else if (relation->reversed)
      range.low = literal + (strict ? 1 : 0);
    else
      range.high = literal - (strict ? 1 : 0);
    collected.indices.push_back({place, range});
  }
  return facts[block] = std::move(collected);
}

} // namespace ptxrewrite::ir
