// Obligations: bounds of forms in all launches and in one, proofs, sets of obligations.
#include "ir/analysis/linear/linear_state.h"
#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::ir {

using State = LinearForms::State;

namespace {

constexpr std::array<std::string_view, form_index::count> index_names = {"",        "tid.x",   "tid.y",  "tid.z",
                                                                         "ctaid.x", "ctaid.y", "ctaid.z"};

bool within(const Interval& inner, const Interval& outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

// Adds coefficient * index to `bounds`; returns false on overflow of 128 bits.
bool accumulate(Interval& bounds, const Interval& coefficient, const Interval& index) {
  Int128 corner[4];
  if (__builtin_mul_overflow(coefficient.low, index.low, &corner[0]) ||
      __builtin_mul_overflow(coefficient.low, index.high, &corner[1]) ||
      __builtin_mul_overflow(coefficient.high, index.low, &corner[2]) ||
      __builtin_mul_overflow(coefficient.high, index.high, &corner[3]))
    return false;
  return !__builtin_add_overflow(bounds.low, *std::min_element(corner, corner + 4), &bounds.low) &&
         !__builtin_add_overflow(bounds.high, *std::max_element(corner, corner + 4), &bounds.high);
}

// Bounds of one form, given ranges of its expressions, indices and trip counts: one walk for all launches and for one.
template <class OfExpression, class OfUnsigned, class OfTrips>
std::optional<Interval> walk_bounds(const State& state, const LinearForm& form,
                                    const std::array<Interval, form_index::count>& indices, OfExpression&& of,
                                    OfUnsigned&& of_unsigned, OfTrips&& of_trips) {
  if (form.kind == ValueClass::divergent_linear) {
    std::optional<Interval> all;
    for (unsigned i = 0; i < 1u << form.condition_count; ++i) {
      auto one = walk_bounds(state, state.at(form.alternatives[i]), indices, of, of_unsigned, of_trips);
      if (!one) return std::nullopt;
      all = all ? Interval{std::min(all->low, one->low), std::max(all->high, one->high)} : *one;
    }
    return all;
  }
  if (form.kind == ValueClass::mod_linear) {
    std::optional<Interval> divisor = form.signed_remainder ? of(form.divisor) : of_unsigned(form.divisor);
    auto multiplier = of(form.multiplier), addend = of(form.addend);
    if (!divisor || !multiplier || !addend || divisor->low <= 0) return std::nullopt;
    Interval remainder{form.signed_remainder ? 1 - divisor->high : 0, divisor->high - 1};
    Interval bounds = *addend;
    return accumulate(bounds, *multiplier, remainder) ? std::optional(bounds) : std::nullopt;
  }
  if (!form.has_coefficients()) return std::nullopt;
  auto start = of(form.coefficients[form_index::constant]);
  if (!start) return std::nullopt;
  Interval bounds = *start;
  for (unsigned place = 1; place < form_index::count; ++place) {
    if (state.pool.is_zero(form.coefficients[place])) continue;
    auto coefficient = of(form.coefficients[place]);
    if (!coefficient || !accumulate(bounds, *coefficient, indices[place])) return std::nullopt;
  }
  for (const LoopOffset& offset : form.loops()) {
    auto step = of(offset.step);
    std::optional<Int128> most = of_trips(offset.loop);
    if (!step || !most || !accumulate(bounds, *step, {0, *most})) return std::nullopt;
  }
  return bounds;
}

// The largest trip number k: start + j * step REL limit holds for all j < k.
std::optional<Int128> count_trips(const TripBound& bound, Interval start, Interval limit, Int128 step, unsigned width) {
  bool is_signed = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_equal_signed;
  bool strict = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_unsigned;
  Interval range = is_signed ? signed_range(width) : unsigned_range(width);
  if (!within(start, range) || !within(limit, range)) return std::nullopt;
  Int128 distance, size;
  if (!bound.reversed) {
    // The last tested value must not wrap, otherwise the loop would continue.
    if (step <= 0 || limit.high - (strict ? 1 : 0) + step > range.high) return std::nullopt;
    distance = limit.high - start.low + (strict ? 0 : 1);
    size = step;
  } else {
    if (step >= 0 || limit.low + (strict ? 1 : 0) + step < range.low) return std::nullopt;
    distance = start.high - limit.low + (strict ? 0 : 1);
    size = -step;
  }
  return distance <= 0 ? 0 : (distance + size - 1) / size;
}

} // namespace

// --- all launches ---

std::array<Interval, form_index::count> State::index_ranges(const LaunchLimits& facts) const {
  std::array<Interval, form_index::count> ranges{};
  for (unsigned i = 0; i < 3; ++i) {
    ranges[form_index::tid_x + i] = {0, facts.block[i].high - 1};
    ranges[form_index::ctaid_x + i] = {0, facts.grid[i].high - 1};
  }
  return ranges;
}

std::optional<Interval> State::form_bounds(const LinearForm& form, const LaunchLimits& facts,
                                           const std::array<Interval, form_index::count>& indices) const {
  auto of = [&](ExpressionId id) { return std::optional(pool.interval(id, facts)); };
  auto of_unsigned = [&](ExpressionId id) {
    Interval bounds = pool.interval(id, facts);
    return std::optional(bounds.low >= 0 ? bounds : unsigned_range(pool.width(id)));
  };
  return walk_bounds(*this, form, indices, of, of_unsigned, [&](LoopId loop) { return most_trips(loop, facts); });
}

std::optional<Int128> State::most_trips(LoopId loop, const LaunchLimits& facts) const {
  if (loop.index() >= trip_bounds.size() || !trip_bounds[loop.index()].known) return std::nullopt;
  const TripBound& bound = trip_bounds[loop.index()];
  unsigned width = pool.width(bound.limit);
  auto step_literal = pool.literal_value(bound.step);
  auto start = form_bounds(at(bound.tested), facts, index_ranges(facts));
  if (!step_literal || !start) return std::nullopt;
  Int128 step = signed_value(*step_literal, width);
  Interval limit = pool.interval(bound.limit, facts);
  if (bound.relation != Comparison::not_equal) return count_trips(bound, *start, limit, step, width);
  if (step == 1 && limit.low >= start->high && start->low == start->high) return limit.high - start->low;
  if (step == -1 && limit.high <= start->low && start->low == start->high) return start->high - limit.low;
  // Literals: the distance must be a multiple of the step.
  if (limit.low != limit.high || start->low != start->high || step == 0) return std::nullopt;
  Int128 distance = limit.low - start->low;
  if (distance % step != 0 || distance / step < 0) return std::nullopt;
  return distance / step;
}

// --- one launch ---

std::optional<Interval> State::bounds_in(const LinearForm& form, const LaunchValues& launch) const {
  std::array<Interval, form_index::count> indices{};
  for (unsigned i = 0; i < 3; ++i) {
    indices[form_index::tid_x + i] = {0, Int128(launch.block[i]) - 1};
    indices[form_index::ctaid_x + i] = {0, Int128(launch.grid[i]) - 1};
  }
  auto point = [](Int128 value) { return std::optional<Interval>({value, value}); };
  auto of = [&](ExpressionId id) {
    auto value = pool.evaluate_signed(id, launch);
    return value ? point(*value) : std::nullopt;
  };
  auto of_unsigned = [&](ExpressionId id) {
    auto value = pool.evaluate(id, launch);
    return value ? point(Int128(*value)) : std::nullopt;
  };
  return walk_bounds(*this, form, indices, of, of_unsigned, [&](LoopId loop) { return most_trips(loop, launch); });
}

std::optional<Int128> State::most_trips(LoopId loop, const LaunchValues& launch) const {
  if (loop.index() >= trip_bounds.size() || !trip_bounds[loop.index()].known) return std::nullopt;
  const TripBound& bound = trip_bounds[loop.index()];
  unsigned width = pool.width(bound.limit);
  auto start = bounds_in(at(bound.tested), launch);
  auto step = pool.evaluate_signed(bound.step, launch);
  auto limit = pool.evaluate(bound.limit, launch);
  if (!start || !step || !limit) return std::nullopt;
  if (bound.relation == Comparison::not_equal) {
    if (start->low != start->high || *step == 0) return std::nullopt;
    uint64_t first = low_bits(static_cast<uint64_t>(start->low), width);
    uint64_t distance = low_bits(*step > 0 ? *limit - first : first - *limit, width);
    Int128 size = *step > 0 ? *step : -*step;
    if (Int128(distance) % size != 0) return std::nullopt;
    return Int128(distance) / size;
  }
  bool is_signed = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_equal_signed;
  Int128 end = is_signed ? Int128(signed_value(*limit, width)) : Int128(*limit);
  return count_trips(bound, *start, {end, end}, *step, width);
}

std::optional<Interval> State::exact_value(ExpressionId expression, const LaunchValues& launch) const {
  const Expression& row = pool[expression];
  Int128 constant = row.kind == ExpressionKind::sum ? signed_value(static_cast<uint64_t>(row.offset), row.width) : 0;
  Interval sum{constant, constant};
  if (row.kind != ExpressionKind::sum) {
    auto value = pool.evaluate_signed(expression, launch);
    return value ? std::optional(Interval{*value, *value}) : std::nullopt;
  }
  for (const ExpressionTerm& term : pool.terms(expression)) {
    Int128 product = signed_value(term.coefficient, row.width);
    for (ExpressionId factor : pool.factors(term.monomial)) {
      auto value = pool.evaluate_signed(factor, launch);
      if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
    }
    if (!accumulate(sum, {product, product}, {1, 1})) return std::nullopt;
  }
  return sum;
}

bool State::evaluate(const RangeObligation& obligation, const LaunchValues& launch) const {
  for (unsigned i = 0; i < 3; ++i)
    if (launch.block[i] == 0 || launch.grid[i] == 0) return true; // no thread exists
  auto bounds = obligation.kind == RangeObligation::Kind::form_range ? bounds_in(at(obligation.form), launch)
                                                                     : exact_value(obligation.expression, launch);
  return bounds && within(*bounds, obligation.range);
}

// --- raising and proving ---

namespace {

// Adds the limits that a true comparison of an expression with a literal implies.
void narrow(const ExpressionPool& pool, ExpressionId condition, LaunchLimits& limits) {
  const Expression& row = pool[condition];
  if (row.kind == ExpressionKind::sum) { // a product of predicates: all factors are true
    auto terms = pool.terms(condition);
    if (row.offset == 0 && terms.size() == 1)
      for (ExpressionId factor : pool.factors(terms[0].monomial))
        narrow(pool, factor, limits);
    return;
  }
  if (row.kind != ExpressionKind::compare) return;
  ExpressionId left = pool.operands(condition)[0], right = pool.operands(condition)[1];
  unsigned width = pool.width(left);
  auto low = pool.literal_value(left), high = pool.literal_value(right);
  Interval full = signed_range(width);
  switch (Comparison(row.payload)) {
  case Comparison::equal:
    if (high) limits.narrowed.push_back({left, {signed_value(*high, width), signed_value(*high, width)}});
    break;
  case Comparison::less_equal_signed:
    if (low) limits.narrowed.push_back({right, {signed_value(*low, width), full.high}});
    if (high) limits.narrowed.push_back({left, {full.low, signed_value(*high, width)}});
    break;
  case Comparison::less_equal_unsigned:
    if (high && signed_value(*high, width) >= 0) limits.narrowed.push_back({left, {0, signed_value(*high, width)}});
    break;
  default:
    break;
  }
}

} // namespace

bool State::is_evaluable(const LinearForm& form) const {
  if (form.kind == ValueClass::divergent_linear) {
    for (unsigned i = 0; i < 1u << form.condition_count; ++i)
      if (!is_evaluable(at(form.alternatives[i]))) return false;
    return true;
  }
  if (form.kind == ValueClass::mod_linear)
    return pool[form.divisor].evaluable && pool[form.multiplier].evaluable && pool[form.addend].evaluable;
  if (!form.has_coefficients()) return false;
  for (ExpressionId id : form.coefficients)
    if (!pool[id].evaluable) return false;
  for (const LoopOffset& offset : form.loops()) {
    if (!pool[offset.step].evaluable || offset.loop.index() >= trip_bounds.size()) return false;
    const TripBound& bound = trip_bounds[offset.loop.index()];
    if (!bound.known || !pool[bound.limit].evaluable || !is_evaluable(at(bound.tested))) return false;
  }
  return true;
}

std::optional<Interval> State::form_bounds_in(const LinearForm& form, BlockId block) {
  const Facts& known = facts_in(block);
  LaunchLimits narrowed = limits;
  for (ExpressionId condition : known.conditions)
    narrow(pool, condition, narrowed);
  auto indices = index_ranges(narrowed);
  for (const auto& [index, interval] : known.indices)
    indices[index] = {std::max(indices[index].low, interval.low), std::min(indices[index].high, interval.high)};
  return form_bounds(form, narrowed, indices);
}

ObligationId State::require(LinearFormId form, Interval range, InstructionId instruction) {
  // Proved for all blocks, when the same was asked before.
  const auto everywhere = obligation_index.find({form.index(), 0, range.low, range.high, UINT32_MAX});
  if (everywhere != obligation_index.end() && obligations[everywhere->second].proved) return everywhere->second;
  RangeObligation row;
  row.kind = RangeObligation::Kind::form_range;
  row.form = form;
  row.range = range;
  row.instruction = instruction;
  row.source = function.instructions[instruction].range;
  if (last_bounds.form != form) last_bounds = {form, form_bounds(at(form)), {}, {}};
  std::optional<Interval> bounds = last_bounds.everywhere;
  uint32_t place = UINT32_MAX;
  if (bounds && within(*bounds, range)) {
    row.proved = true;
    bool stated = std::ranges::any_of(function.directives, [&](const FunctionDirective& directive) {
      std::string_view name = function.module().text(directive.name);
      return name == ".reqntid" || name == ".maxntid";
    });
    row.reason = stated ? "block and grid limits, .reqntid or .maxntid" : "block and grid limits";
  } else {
    BlockId block = function.instructions[instruction].block;
    if (last_bounds.block != block) last_bounds.in_block = form_bounds_in(at(form), block);
    last_bounds.block = block;
    bounds = last_bounds.in_block;
    if (bounds && within(*bounds, range)) {
      row.proved = true;
      row.reason = "a branch that dominates it";
      place = block.index();
    }
  }
  auto [found, fresh] = obligation_index.try_emplace({form.index(), 0, range.low, range.high, place}, ObligationId());
  if (!fresh) return found->second;
  row.launch_checkable = is_evaluable(at(form));
  return found->second = obligations.add(std::move(row));
}

ObligationId State::require_expression(ExpressionId expression, Interval range, InstructionId instruction) {
  auto [found, fresh] =
      obligation_index.try_emplace({expression.index(), 1, range.low, range.high, UINT32_MAX}, ObligationId());
  if (!fresh) return found->second;
  RangeObligation row;
  row.kind = RangeObligation::Kind::expression_range;
  row.expression = expression;
  row.range = range;
  row.instruction = instruction;
  row.source = function.instructions[instruction].range;
  row.launch_checkable = pool[expression].evaluable;
  // interval() returns the whole range of the width if the sum may wrap, so bound the terms individually.
  Int128 constant = pool[expression].kind == ExpressionKind::sum
                        ? signed_value(static_cast<uint64_t>(pool[expression].offset), pool.width(expression))
                        : 0;
  Interval bounds{constant, constant};
  bool exact = pool[expression].kind == ExpressionKind::sum;
  for (const ExpressionTerm& term : pool.terms(expression)) {
    Int128 coefficient = signed_value(term.coefficient, pool.width(expression));
    auto factors = pool.factors(term.monomial);
    exact = exact && factors.size() == 1 &&
            accumulate(bounds, {coefficient, coefficient}, pool.interval(factors[0], limits));
  }
  row.proved = exact && within(bounds, range);
  if (row.proved) row.reason = "block and grid limits";
  return found->second = obligations.add(std::move(row));
}

// --- text for people ---

const std::string& State::statement(ObligationId id) {
  std::string& text = statements[id];
  if (!text.empty()) return text;
  const RangeObligation& row = obligations[id];
  const std::string sum = row.kind == RangeObligation::Kind::form_range ? sum_text(at(row.form))
                                                                        : pool.print_short(row.expression, &function);
  return text = to_string(row.range.low) + " <= " + sum + " <= " + to_string(row.range.high);
}

std::string State::sum_text(const LinearForm& form) const {
  if (form.kind == ValueClass::mod_linear) {
    std::string text = "(" + sum_text(at(form.dividend)) + " mod " + pool.print_short(form.divisor, &function) + ")";
    if (!pool.is_literal(form.multiplier, 1)) text += "*(" + pool.print_short(form.multiplier, &function) + ")";
    if (!pool.is_zero(form.addend)) text += " + " + pool.print_short(form.addend, &function);
    return text;
  }
  if (!form.has_coefficients()) return std::string(spelling(form.kind));
  std::string text;
  auto append = [&](ExpressionId coefficient, const std::string& name) {
    if (pool.is_zero(coefficient)) return;
    std::string factor = pool.print_short(coefficient, &function);
    bool plain = factor.find_first_of("+-", 1) == std::string::npos || factor.back() == ')';
    if (!text.empty()) text += " + ";
    if (name.empty())
      text += factor;
    else if (pool.is_literal(coefficient, 1))
      text += name;
    else
      text += (plain ? factor : "(" + factor + ")") + "*" + name;
  };
  for (unsigned place = 0; place < form_index::count; ++place)
    append(form.coefficients[place], std::string(index_names[place]));
  for (const LoopOffset& offset : form.loops())
    append(offset.step, loop_name(offset.loop));
  return text.empty() ? "0" : text;
}

// --- sets ---

ObligationSetId State::make_set(std::vector<ObligationId>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (list.size() > obligation_limit + 1) list.resize(obligation_limit + 1);
  auto [found, fresh] = set_index.try_emplace(list, ObligationSetId());
  if (fresh) found->second = obligation_sets.add(obligation_lists.add(list));
  return found->second;
}

ObligationSetId State::united(ObligationSetId a, ObligationSetId b) {
  if (a == b || obligation_sets[b].empty()) return a;
  if (obligation_sets[a].empty()) return b;
  if (obligation_sets[a].count > obligation_limit) return a;
  if (obligation_sets[b].count > obligation_limit) return b;
  if (b < a) std::swap(a, b);
  auto [found, fresh] = union_index.try_emplace({a, b}, ObligationSetId());
  if (!fresh) return found->second;
  auto left = obligation_lists.view(obligation_sets[a]), right = obligation_lists.view(obligation_sets[b]);
  std::vector<ObligationId> list(left.begin(), left.end());
  list.insert(list.end(), right.begin(), right.end());
  ObligationSetId result = make_set(list);
  return union_index[{a, b}] = result;
}

} // namespace ptxrewrite::ir
