// Facts that hold when a block executes: comparisons decided by dominating branches, and trip bounds of its loops.
#include "ir/analysis/linear/extent.h"

#include "ir/analysis/linear/relation.h"
#include "ir/flow/dominators.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

constexpr size_t scope_fact_limit = 48;   // of one block
constexpr unsigned dominator_limit = 256; // dominating blocks examined
constexpr unsigned connective_limit = 8;  // and, or and not around one comparison

Int128 ceiling(Int128 a, Int128 b) {
  return a > 0 ? (a + b - 1) / b : -(-a / b);
}
Int128 flooring(Int128 a, Int128 b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

} // namespace

// --- scopes ---

// Starts from the nearest dominator with a known scope; facts omitted further up only make the scope weaker.
const AccessExtents::Scope& AccessExtents::scope_of(BlockId block, Scope& scope) {
  if (auto found = scopes_.find(block); found != scopes_.end() && loops_in_progress_.empty()) return found->second;
  std::vector<BlockId> chain;
  scope = {};
  for (BlockId at = block; at && chain.size() < dominator_limit; at = forms_.dominators().immediate_dominator(at)) {
    if (auto found = scopes_.find(at); found != scopes_.end() && loops_in_progress_.empty()) {
      scope = found->second;
      break;
    }
    chain.push_back(at);
  }
  for (size_t i = chain.size(); i-- > 0;) {
    const BlockId above = i + 1 < chain.size() ? chain[i + 1] : scope.block;
    enter(scope, above, chain[i]);
    if (loops_in_progress_.empty()) scopes_[chain[i]] = scope;
  }
  return scope;
}

// Extends the scope of a block to that of a block which it immediately dominates.
void AccessExtents::enter(Scope& scope, BlockId above, BlockId block) {
  const LoopForest& loops = forms_.loops();
  scope.block = block;
  // After a loop only its last trip matters, whose number is not known: drop facts on its trip number.
  std::erase_if(scope.facts, [&](const Fact& fact) {
    return std::ranges::any_of(fact.coefficients, [&](const auto& row) {
      return row.first >= loop_place && !loops.contains(LoopId(row.first - loop_place), block);
    });
  });
  if (above && function_.successors(above).size() == 2) {
    const auto successors = function_.successors(above);
    const BlockId taken = function_.edges[successors[0]].to, other = function_.edges[successors[1]].to;
    const InstructionId end = function_.terminator(above);
    unsigned entries = 0;
    for (EdgeId edge : forms_.control_flow().predecessors(block))
      entries += !forms_.dominators().dominates(block, function_.edges[edge].from);
    if (taken != other && (block == taken || block == other) && entries == 1 && end &&
        function_.is_opcode(end, Opcode::bra) && function_.instructions[end].guard) {
      const bool holds = (block == taken) != function_.instructions[end].guard_negated;
      add_predicate(scope, function_.instructions[end].guard, holds, 0);
    }
  }
  if (LoopId loop = loops.innermost(block); loop && loops.loops()[loop].header == block) add_loop_fact(scope, loop);
}

const AccessExtents::Scope& AccessExtents::guarded_scope(InstructionId access, Scope& own) {
  const Instruction& row = function_.instructions[access];
  const Scope& scope = scope_of(row.block, own);
  if (!row.guard) return scope;
  if (&scope != &own) own = scope;
  add_predicate(own, row.guard, !row.guard_negated, 0);
  return own;
}

// --- predicates ---

void AccessExtents::add_predicate(Scope& scope, ValueId predicate, bool holds, unsigned depth) {
  if (depth > connective_limit || scope.facts.size() > scope_fact_limit) return;
  const InstructionId id = forms_.def_use().definition(predicate).instruction;
  if (!id || function_.instructions[id].kind != InstructionKind::real || function_.instructions[id].guard) return;
  const Form& form = function_.form_of(id);
  const auto operands = function_.operands_of(id);
  if (operands.empty() || !operands[0].is(OperandKind::value)) return;
  auto add_source = [&](size_t i, bool wanted) {
    if (i < operands.size() && operands[i].is(OperandKind::value))
      add_predicate(scope, operands[i].as_value(), wanted != operands[i].has(OperandFlag::negated), depth + 1);
  };
  if (form.opcode == Opcode::setp) {
    const bool is_and = form.has(Modifier::and_), is_or = form.has(Modifier::or_);
    if (form.has(Modifier::xor_) || (is_and && !holds) || (is_or && holds)) return;
    if (is_and || is_or) add_source(3, holds);
    add_comparison(scope, id, holds);
    return;
  }
  if (form.type() != ScalarType::pred) return;
  if (form.operation == Operation::copy) add_source(1, holds);
  if (form.operation == Operation::complement) add_source(1, !holds);
  if ((form.operation == Operation::bit_and && holds) || (form.operation == Operation::bit_or && !holds)) {
    add_source(1, holds);
    add_source(2, holds);
  }
}

void AccessExtents::add_comparison(Scope& scope, InstructionId compare, bool holds) {
  const Form& form = function_.form_of(compare);
  if (!is_integer(form.type()) && !is_bit_type(form.type())) return;
  auto relation = relation_of(form);
  if (!relation) return;
  if (!holds) relation = opposite(*relation);
  const auto operands = function_.operands_of(compare);
  const Operand a = operands[1], b = operands[2];
  switch (relation->comparison) {
  case Comparison::not_equal:
    if (a.is(OperandKind::value) && b.is(OperandKind::integer) && b.immediate >= 0) {
      const uint64_t number = static_cast<uint64_t>(b.immediate);
      const auto known = scope.at_least.find(a.as_value());
      if ((known == scope.at_least.end() ? 0 : known->second) == number) raise(scope, a.as_value(), number + 1);
    }
    return add_inequality(scope, compare, a, b);
  case Comparison::equal:
    if (a.is(OperandKind::value) && b.is(OperandKind::integer) && b.immediate > 0)
      raise(scope, a.as_value(), static_cast<uint64_t>(b.immediate));
    add_order(scope, compare, a, b, false, true);
    add_order(scope, compare, b, a, false, true);
    return;
  case Comparison::less_signed:
  case Comparison::less_equal_signed:
  case Comparison::less_unsigned:
  case Comparison::less_equal_unsigned: {
    const bool strict =
        relation->comparison == Comparison::less_signed || relation->comparison == Comparison::less_unsigned;
    const bool is_signed =
        relation->comparison == Comparison::less_signed || relation->comparison == Comparison::less_equal_signed;
    add_order(scope, compare, relation->reversed ? b : a, relation->reversed ? a : b, strict, is_signed);
    return;
  }
  }
}

// The register is at least `least` as an unsigned number, by comparisons with numbers one after the other: `n & 3` is
// neither 0 nor 1. So are the numbers that it is part of: n is at least 2.
void AccessExtents::raise(Scope& scope, ValueId value, uint64_t least) {
  scope.at_least[value] = least;
  for (unsigned depth = 0; value && least > 0 && depth < connective_limit; ++depth) {
    const InstructionId id = forms_.def_use().definition(value).instruction;
    if (!id || function_.instructions[id].kind != InstructionKind::real || function_.instructions[id].guard) return;
    const Form& form = function_.form_of(id);
    const auto operands = function_.operands_of(id);
    if (operands.size() != 3 || !operands[1].is(OperandKind::value) || !operands[2].is(OperandKind::integer) ||
        form.has(Modifier::sat) || form.carry_out || form.effects.reads_carry)
      return;
    const Int128 number = operands[2].immediate;
    if (form.operation == Operation::shift_right && number >= 0 && number < 31)
      least <<= number;
    else if (form.operation == Operation::add && number >= 0 && number <= Int128(least))
      least -= static_cast<uint64_t>(number); // a sum that wraps was a larger number before
    else if (form.operation != Operation::bit_and)
      return;
    if (least == 0 || least > INT32_MAX) return;
    value = operands[1].as_value();
    add_least(scope, id, operands[1], least);
  }
}

// Adds the fact that a register, which is at least `least` as an unsigned number, is so as a signed one.
void AccessExtents::add_least(Scope& scope, InstructionId user, const Operand& operand, uint64_t least) {
  if (scope.facts.size() > scope_fact_limit) return;
  LaunchConditions conditions;
  const auto number = compared(scope, user, operand, conditions);
  if (!number || number->coefficients.empty()) return;
  Query query{&scope, conditions, 0};
  const auto span = span_of(*number, query);
  if (!span || !is_known_not_negative(span->low, query)) return;
  const ExactSum literal = ExactSum::literal(static_cast<Int128>(least));
  add_fact(scope, Affine{{}, {literal, literal}}, *number, 0, query.conditions);
}

// One side of a comparison as the signed value of the register.
std::optional<AccessExtents::Affine> AccessExtents::compared(Scope& scope, InstructionId compare,
                                                             const Operand& operand, LaunchConditions& conditions) {
  const unsigned width = bit_width(function_.form_of(compare).type());
  Query query{&scope, {}, 0};
  Affine result;
  if (operand.is(OperandKind::integer)) {
    const ExactSum literal = ExactSum::literal(signed_value(static_cast<uint64_t>(operand.immediate), width));
    result.constant = {literal, literal};
    return result;
  }
  const LinearForm form = forms_.operand_form(compare, operand);
  if (form.width != width || form.varies || width < 16) return std::nullopt;
  for (const LoopOffset& offset : form.loops())
    if (!forms_.loops().contains(offset.loop, scope.block)) return std::nullopt;
  if (operand.is(OperandKind::value)) {
    auto needed = discharge(forms_.obligations(operand.as_value()));
    if (!needed) return std::nullopt;
    query.conditions = *needed;
  } else if (!operand.is(OperandKind::special_register)) {
    return std::nullopt;
  }
  auto sum = affine(form, query);
  auto span = sum ? span_of(*sum, query) : std::nullopt;
  if (!span || !require_within(*span, signed_range(width), query)) return std::nullopt;
  conditions.insert(query.conditions.begin(), query.conditions.end());
  return sum;
}

void AccessExtents::add_order(Scope& scope, InstructionId compare, const Operand& lesser, const Operand& greater,
                              bool strict, bool is_signed) {
  LaunchConditions conditions;
  auto low = compared(scope, compare, lesser, conditions),
       high = low ? compared(scope, compare, greater, conditions) : std::nullopt;
  if (!high) return;
  if (!is_signed) {
    // Unsigned numbers below a number that is not negative as a signed one are not negative as signed ones, either.
    Query query{&scope, {}, 0};
    auto span = span_of(*high, query);
    if (!span) return;
    require_not_negative(span->low, query);
    conditions.insert(query.conditions.begin(), query.conditions.end());
    add_fact(scope, Affine{{}, {ExactSum(), ExactSum()}}, *low, 0, conditions);
  }
  add_fact(scope, *low, *high, strict ? 1 : 0, conditions);
}

// Adds the fact lesser + gap <= greater.
void AccessExtents::add_fact(Scope& scope, const Affine& lesser, const Affine& greater, Int128 gap,
                             const LaunchConditions& conditions) {
  Fact fact;
  fact.coefficients = lesser.coefficients;
  for (const auto& [place, coefficient] : greater.coefficients) {
    ExactSum& sum = fact.coefficients[place];
    sum = sum - coefficient;
    if (sum.is_broken()) return;
    if (sum.is_zero()) fact.coefficients.erase(place);
  }
  fact.bound = greater.constant.high - lesser.constant.low - ExactSum::literal(gap);
  fact.conditions = conditions;
  if (fact.bound.is_broken()) return;
  // The varying part is at least its minimum; the bound cannot be below that.
  Places opposite;
  for (const auto& [place, coefficient] : fact.coefficients)
    opposite[place] = coefficient * -1;
  Query query{&scope, conditions, 0};
  if (auto least = most(opposite, query)) narrow(scope, fact.bound + *least, query.conditions);
  if (!fact.coefficients.empty()) scope.facts.push_back(std::move(fact));
}

// Handles `a != b` for launch-uniform numbers of which one is known to be at least the other.
void AccessExtents::add_inequality(Scope& scope, InstructionId compare, const Operand& a, const Operand& b) {
  LaunchConditions conditions;
  auto first = compared(scope, compare, a, conditions),
       second = first ? compared(scope, compare, b, conditions) : std::nullopt;
  if (!second || !first->coefficients.empty() || !second->coefficients.empty() || !first->constant.is_point() ||
      !second->constant.is_point())
    return;
  for (const ExactSum& difference :
       {first->constant.low - second->constant.low, second->constant.low - first->constant.low}) {
    Query query{&scope, conditions, 0};
    if (is_known_not_negative(difference, query))
      return narrow(scope, difference - ExactSum::literal(1), query.conditions);
  }
}

// Adds the fact bound >= 0.
void AccessExtents::narrow(Scope& scope, const ExactSum& bound, const LaunchConditions& conditions) {
  if (bound.is_broken()) return;
  Query query{&scope, {}, 0};
  if (!is_known_not_negative(bound, query) && scope.not_negative.size() < scope_fact_limit)
    scope.not_negative.emplace_back(bound, conditions);
  if (bound.is_broken() || bound.terms().empty() || bound.terms().size() > 2) return;
  const auto& [product, coefficient] = *bound.terms().rbegin();
  if (product.size() != 1 || (bound.terms().size() == 2 && !bound.terms().begin()->first.empty())) return;
  const QuantityId id = product.front();
  const Int128 literal = bound.literal_part();
  Interval& range = scope.ranges.try_emplace(id, quantities_[id].range).first->second;
  const Interval before = range;
  if (coefficient > 0)
    range.low = std::max(range.low, ceiling(-literal, coefficient));
  else
    range.high = std::min(range.high, flooring(literal, -coefficient));
  if (range.low > range.high) range = before; // no thread reaches this point
  if (range != before) scope.range_conditions[id].insert(conditions.begin(), conditions.end());
}

// --- loops ---

// The tested value of a loop is its initial value in the first trip, and in later trips it satisfies the limit, because
// the loop has continued.
void AccessExtents::add_loop_fact(Scope& scope, LoopId loop) {
  const TripBound bound = forms_.trip_bound(loop);
  if (!bound.known || bound.relation == Comparison::not_equal || loops_in_progress_.contains(loop) ||
      loops_in_progress_.size() > 4 || scope.facts.size() > scope_fact_limit)
    return;
  loops_in_progress_.insert(loop);
  Query query{&scope, {}, 0};
  if (auto fact = loop_fact(bound, loop, query)) {
    fact->conditions = query.conditions;
    scope.facts.push_back(std::move(*fact));
  }
  loops_in_progress_.erase(loop);
}

std::optional<AccessExtents::Fact> AccessExtents::loop_fact(const TripBound& bound, LoopId loop, Query& query) {
  const unsigned width = pool_.width(bound.limit);
  const bool is_signed = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_equal_signed;
  const Int128 gap = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_unsigned ? 1 : 0;
  const Interval range = is_signed ? signed_range(width) : unsigned_range(width);
  if (!discharge_exits(loop, query)) return std::nullopt;
  const LinearForm tested = forms_.form(bound.tested);
  auto first = affine(tested, query);
  auto limit = exact(bound.limit, is_signed ? Reading::as_signed : Reading::as_unsigned, query);
  auto step = exact(bound.step, Reading::as_signed, query);
  if (!first || !limit || !step || !step->is_point()) return std::nullopt;
  auto start = span_of(*first, query);
  if (!start || !require_within(*start, range, query)) return std::nullopt;
  // Counting down is negated to counting up.
  const Int128 sign = bound.reversed ? -1 : 1;
  const ExactSum size = step->low * sign;
  require_not_negative(size - ExactSum::literal(1), query);
  const ExactSum last = bound.reversed ? limit->low * -1 : limit->high; // tested*sign + gap <= last while it continues
  const Int128 most_there_is = bound.reversed ? -range.low : range.high;
  require_not_negative(ExactSum::literal(most_there_is + gap) - last - size, query);
  Fact fact;
  Places places;
  for (const auto& [place, coefficient] : first->coefficients)
    places[place] = coefficient * sign;
  auto varying = most(places, query);
  if (!varying) return std::nullopt;
  const ExactSum constant = (bound.reversed ? first->constant.low * -1 : first->constant.high) - size;
  const ExactSum least = (bound.reversed ? first->constant.high * -1 : first->constant.low) - size;
  fact.coefficients = places;
  fact.coefficients[loop_place + loop.index()] = size;
  fact.bound = maximum(constant + *varying, last - ExactSum::literal(gap), query) - least;
  return fact.bound.is_broken() ? std::nullopt : std::optional(std::move(fact));
}

// The forms of the operands that the loop's exit tests compare must be valid.
bool AccessExtents::discharge_exits(LoopId loop, Query& query) {
  for (EdgeId exit : forms_.loops().loops()[loop].exits) {
    const InstructionId end = function_.terminator(function_.edges[exit].from);
    const ValueId guard = end ? function_.instructions[end].guard : ValueId();
    const InstructionId compare = guard ? forms_.def_use().definition(guard).instruction : InstructionId();
    if (!compare) continue;
    std::vector<ObligationId> list;
    for_each_use(function_, compare, [&](ValueId value) {
      const auto own = forms_.obligations(value);
      list.insert(list.end(), own.begin(), own.end());
    });
    auto conditions = discharge(list);
    if (!conditions) return false;
    query.conditions.insert(conditions->begin(), conditions->end());
  }
  return true;
}

} // namespace ptxrewrite::ir
