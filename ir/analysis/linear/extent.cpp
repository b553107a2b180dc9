// Bounds of forms over one launch. To maximise a form, facts that bound a part of it as a whole are applied first (`i <
// n` if the form contains 4*n*i), and the remaining indices take their largest values: from the dimensions of block and
// grid and the trip counts of loops.
#include "ir/analysis/linear/extent.h"

#include "ir/analysis/linear/linear_state.h"
#include "ir/core/module.h"

#include <algorithm>
#include <ranges>

namespace ptxrewrite::ir {

namespace {

bool has_sum(const LinearForm& form) {
  return form.has_coefficients() && form.kind != ValueClass::any && form.kind != ValueClass::mod_linear &&
         form.kind != ValueClass::divergent_linear;
}

Interval range_of(bool is_signed, unsigned width) {
  return is_signed ? signed_range(width) : unsigned_range(width);
}

} // namespace

AccessExtents::AccessExtents(LinearForms& forms)
    : forms_(forms), pool_(forms.expressions()), function_(forms.function()), limits_(forms.state().limits) {
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != InstructionKind::real) continue;
      for (size_t i = 0; i < function_.operands_of(id).size(); ++i) {
        const Operand& operand = function_.operands_of(id)[i];
        const bool converted = function_.is_opcode(id, Opcode::cvta) && i == 1 && operand.is(OperandKind::value);
        const bool addressed =
            i > 0 && operand.is(OperandKind::value) && function_.operands_of(id)[i - 1].is(OperandKind::address);
        if (!converted && !addressed) continue;
        const LinearForm& form = forms_.form(operand.as_value());
        if (form.width == 64 && has_sum(form) &&
            pool_[form.coefficients[form_index::constant]].kind == ExpressionKind::parameter)
          pointers_.insert(pool_[form.coefficients[form_index::constant]].payload);
      }
    }
}

// --- intervals and conditions ---

void AccessExtents::add_conditions_of(const std::vector<QuantityId>& used, Query& query) const {
  for (QuantityId id : used)
    if (auto found = query.scope->range_conditions.find(id); found != query.scope->range_conditions.end())
      query.conditions.insert(found->second.begin(), found->second.end());
}

std::optional<Interval> AccessExtents::interval(const ExactSum& sum, Query& query) const {
  std::vector<QuantityId> used;
  auto range = quantities_.interval(sum, query.scope->ranges, &used);
  add_conditions_of(used, query);
  return range;
}

// Adds conditions only if the answer is true.
bool AccessExtents::is_known_not_negative(const ExactSum& sum, Query& query) const {
  if (sum.is_broken()) return false;
  std::vector<QuantityId> used;
  if (auto range = quantities_.interval(sum, query.scope->ranges, &used); range && range->low >= 0) {
    add_conditions_of(used, query);
    return true;
  }
  for (const auto& [known, conditions] : query.scope->not_negative) {
    used.clear();
    auto rest = quantities_.interval(sum - known, query.scope->ranges, &used);
    if (!rest || rest->low < 0) continue;
    add_conditions_of(used, query);
    query.conditions.insert(conditions.begin(), conditions.end());
    return true;
  }
  // A multiple of a sum is not negative if the sum is not.
  if (const Int128 common = sum.common_divisor(); common > 1) {
    const auto part = sum.divided(common);
    if (part && is_known_not_negative(*part, query)) return true;
  }
  // A product is not negative if its factors are not.
  if (sum.terms().size() < 2 || sum.terms().begin()->first.empty()) return false;
  for (QuantityId id : sum.terms().begin()->first) {
    const ExactSum factor = ExactSum::of(id);
    auto rest = sum.divided(factor);
    if (!rest) continue;
    Query attempt = query;
    if (!is_known_not_negative(factor, attempt) || !is_known_not_negative(*rest, attempt)) continue;
    query = attempt;
    return true;
  }
  return false;
}

// True if the sum is known not to be negative, or is not if parameters are not; the latter becomes a condition. Adds
// conditions only if the answer is true.
bool AccessExtents::is_not_negative(const ExactSum& sum, Query& query) const {
  if (sum.is_broken()) return false;
  if (is_known_not_negative(sum, query)) return true;
  std::vector<QuantityId> used;
  auto range = quantities_.interval(sum, query.scope->ranges, &used);
  if (range && range->high < 0) return false;
  QuantityRanges assumed = query.scope->ranges;
  LaunchConditions conditions;
  for (const auto& [product, coefficient] : sum.terms())
    for (QuantityId id : product) {
      Interval known = quantities_[id].range;
      if (auto found = assumed.find(id); found != assumed.end()) known = found->second;
      if (known.low >= 0 || known.high < 0 || quantities_[id].kind != Quantity::Kind::plain) continue;
      assumed[id] = {0, known.high};
      conditions.insert(quantities_[id].text + " >= 0");
    }
  range = quantities_.interval(sum, assumed);
  if (!range || range->low < 0) return false;
  add_conditions_of(used, query); // the assumed ranges include the narrowed ranges in use
  query.conditions.insert(conditions.begin(), conditions.end());
  return true;
}

void AccessExtents::require_not_negative(const ExactSum& sum, Query& query) const {
  if (!is_known_not_negative(sum, query)) query.conditions.insert(quantities_.not_negative(sum));
}

bool AccessExtents::require_within(const Span& span, Interval range, Query& query) const {
  if (span.low.is_broken() || span.high.is_broken()) return false;
  require_not_negative(span.low - ExactSum::literal(range.low), query);
  require_not_negative(ExactSum::literal(range.high) - span.high, query);
  return true;
}

ExactSum AccessExtents::maximum(const ExactSum& a, const ExactSum& b, Query& query) {
  if (is_not_negative(a - b, query)) return a;
  if (is_not_negative(b - a, query)) return b;
  return quantities_.maximum(a, b, {});
}

ExactSum AccessExtents::minimum(const ExactSum& a, const ExactSum& b, Query& query) {
  return maximum(a * -1, b * -1, query) * -1;
}

// Replaces quotients that the scope's facts make exact: where n - 2*floor(n / 2) - 1 is not negative, it is 0.
ExactSum AccessExtents::with_equalities(ExactSum sum, Query& query) const {
  for (const auto& [zero, conditions] : query.scope->not_negative) {
    std::vector<QuantityId> used;
    const auto range = quantities_.interval(zero, query.scope->ranges, &used);
    if (!range || range->high > 0) continue;
    for (const auto& [quotient, factor] : zero.terms()) {
      if (quotient.size() != 1 || quantities_[quotient.front()].kind != Quantity::Kind::whole_part) continue;
      ExactSum part; // times the sum that is 0
      for (const auto& term : sum.terms())
        if (std::ranges::count(term.first, quotient.front()) == 1 && term.second % factor == 0)
          part = part + *ExactSum::of(term).divided(ExactSum::of({quotient, factor}));
      const ExactSum replaced = sum - part * zero;
      if (part.is_zero() || replaced.is_broken()) continue;
      sum = replaced;
      add_conditions_of(used, query);
      query.conditions.insert(conditions.begin(), conditions.end());
      break;
    }
  }
  return sum;
}

// --- forms ---

std::optional<AccessExtents::Affine> AccessExtents::affine(const LinearForm& form, Query& query) {
  if (!has_sum(form)) return std::nullopt;
  Affine out;
  auto constant = modular(form.coefficients[form_index::constant], query);
  if (!constant) return std::nullopt;
  out.constant = *constant;
  auto add = [&](Place place, ExpressionId id) {
    auto coefficient = modular(id, query);
    if (!coefficient || !coefficient->is_point()) return false;
    ExactSum& sum = out.coefficients[place];
    sum = sum + coefficient->low;
    if (sum.is_zero()) out.coefficients.erase(place);
    return true;
  };
  for (Place place = form_index::tid_x; place < form_index::count; ++place)
    if (!add(place, form.coefficients[place])) return std::nullopt;
  for (const LoopOffset& offset : form.loops())
    if (!add(loop_place + offset.loop.index(), offset.step)) return std::nullopt;
  return out;
}

std::optional<ExactSum> AccessExtents::most_by_fact(const Places& coefficients, const Fact& fact, Query& query) {
  if (fact.coefficients.empty()) return std::nullopt;
  // Compute the factor from an index for which the fact has one product; the other indices must agree with it.
  std::optional<ExactSum> factor;
  for (const auto& [place, coefficient] : fact.coefficients) {
    auto own = coefficients.find(place);
    if (own == coefficients.end()) return std::nullopt;
    if (!factor) factor = own->second.divided(coefficient);
  }
  if (!factor || factor->is_zero() || !is_not_negative(*factor, query)) return std::nullopt;
  Places rest = coefficients;
  for (const auto& [place, coefficient] : fact.coefficients) {
    if (coefficient * *factor != rest[place]) return std::nullopt;
    rest.erase(place);
  }
  query.conditions.insert(fact.conditions.begin(), fact.conditions.end());
  auto others = most(rest, query);
  return others ? std::optional(*factor * fact.bound + *others) : std::nullopt;
}

std::optional<ExactSum> AccessExtents::most_in_box(Place place, const ExactSum& coefficient, Query& query) {
  // Indices and trip numbers are never negative.
  if (is_not_negative(coefficient * -1, query)) return ExactSum();
  ExactSum last;
  if (place >= loop_place) {
    auto trip = last_trip(LoopId(place - loop_place), query);
    if (!trip) return std::nullopt;
    last = *trip;
  } else {
    static constexpr std::array<const char*, 6> names = {"ntid.x",   "ntid.y",   "ntid.z",
                                                         "nctaid.x", "nctaid.y", "nctaid.z"};
    const unsigned component = place - form_index::tid_x;
    const Interval extent = component < 3 ? limits_.block[component] : limits_.grid[component - 3];
    last = extent.low == extent.high ? ExactSum::literal(extent.low - 1)
                                     : ExactSum::of(quantities_.plain(names[component], extent)) - ExactSum::literal(1);
  }
  if (is_not_negative(coefficient, query)) return coefficient * last;
  return maximum(ExactSum(), coefficient * last, query);
}

std::optional<ExactSum> AccessExtents::most(const Places& coefficients, Query& query) {
  if (coefficients.empty()) return ExactSum();
  if (query.depth > form_depth || !spend()) return std::nullopt;
  ++query.depth;
  // The innermost branch first, which is the closest to the access.
  std::vector<const Fact*> facts;
  for (const Fact& fact : query.scope->facts | std::views::reverse)
    facts.push_back(&fact);
  std::ranges::stable_sort(
      facts, [](const Fact* a, const Fact* b) { return a->coefficients.size() > b->coefficients.size(); });
  std::optional<ExactSum> result;
  for (const Fact* fact : facts) {
    Query attempt = query;
    result = most_by_fact(coefficients, *fact, attempt);
    if (!result) continue;
    query = attempt;
    --query.depth;
    return result;
  }
  ExactSum sum;
  for (const auto& [place, coefficient] : coefficients) {
    auto one = most_in_box(place, coefficient, query);
    if (!one) return std::nullopt;
    sum = sum + *one;
  }
  --query.depth;
  return sum;
}

std::optional<AccessExtents::Span> AccessExtents::span_of(const Affine& affine, Query& query) {
  Places negated;
  for (const auto& [place, coefficient] : affine.coefficients)
    negated[place] = coefficient * -1;
  auto high = most(affine.coefficients, query);
  auto low = high ? most(negated, query) : std::nullopt;
  if (!low) return std::nullopt;
  Span span{affine.constant.low - *low, affine.constant.high + *high};
  if (span.low.is_broken() || span.high.is_broken()) return std::nullopt;
  return span;
}

// Bounds of (dividend mod divisor) * multiplier + addend.
std::optional<AccessExtents::Span> AccessExtents::span_of_remainder(const LinearForm& form, Query& query) {
  auto divisor = exact(form.divisor, Reading::as_signed, query);
  auto multiplier = modular(form.multiplier, query), addend = modular(form.addend, query);
  if (!divisor || !multiplier || !addend || !multiplier->is_point()) return std::nullopt;
  require_not_negative(divisor->low - ExactSum::literal(1), query);
  const ExactSum last = divisor->high - ExactSum::literal(1);
  Span remainder{form.signed_remainder ? last * -1 : ExactSum(), last};
  auto scaled = product(*multiplier, remainder, query);
  if (!scaled) return std::nullopt;
  return Span{scaled->low + addend->low, scaled->high + addend->high};
}

std::optional<AccessExtents::Span> AccessExtents::span_of(const LinearForm& form, Query& query) {
  if (query.depth > form_depth) return std::nullopt;
  if (form.kind == ValueClass::mod_linear) return span_of_remainder(form, query);
  if (form.kind != ValueClass::divergent_linear) {
    auto sum = affine(form, query);
    return sum ? span_of(*sum, query) : std::nullopt;
  }
  std::optional<Span> all;
  for (unsigned i = 0; i < 1u << form.condition_count; ++i) {
    const LinearForm alternative = forms_.form(form.alternatives[i]);
    auto one = span_of(alternative, query);
    if (!one) return std::nullopt;
    all = all ? Span{minimum(all->low, one->low, query), maximum(all->high, one->high, query)} : *one;
  }
  return all;
}

// --- loops ---

// Trip numbers start at 0. The loop continues after trip k while tested + k*step REL limit.
std::optional<ExactSum> AccessExtents::last_trip(LoopId loop, Query& query) {
  if (query.depth > form_depth) return std::nullopt;
  const TripBound bound = forms_.trip_bound(loop);
  if (!bound.known) return std::nullopt;
  if (bound.relation == Comparison::not_equal) return last_trip_until_equal(bound, query);
  const unsigned width = pool_.width(bound.limit);
  const bool is_signed = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_equal_signed;
  const bool strict = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_unsigned;
  const Interval range = range_of(is_signed, width);
  const LinearForm tested = forms_.form(bound.tested);
  ++query.depth;
  auto start = span_of(tested, query);
  auto limit = exact(bound.limit, is_signed ? Reading::as_signed : Reading::as_unsigned, query);
  auto step = exact(bound.step, Reading::as_signed, query);
  --query.depth;
  if (!start || !limit || !step || !step->is_point() || !require_within(*start, range, query)) return std::nullopt;
  auto literal = step->low.as_literal();
  if (!literal || *literal == 0 || (*literal < 0) != bound.reversed) return std::nullopt;
  const Int128 size = *literal < 0 ? -*literal : *literal, slack = strict ? 0 : 1;
  // The last tested value must not wrap, otherwise the loop would continue.
  ExactSum distance;
  if (!bound.reversed) {
    require_not_negative(ExactSum::literal(range.high - size + 1 - slack) - limit->high, query);
    distance = limit->high - start->low;
  } else {
    require_not_negative(limit->low - ExactSum::literal(range.low + size - 1 + slack), query);
    distance = start->high - limit->low;
  }
  distance = distance + ExactSum::literal(slack);
  return quantities_.whole_part(maximum(ExactSum(), distance, query) + ExactSum::literal(size - 1), size);
}

std::optional<ExactSum> AccessExtents::last_trip_until_equal(const TripBound& bound, Query& query) {
  const unsigned width = pool_.width(bound.limit);
  const LinearForm tested = forms_.form(bound.tested);
  auto start = affine(tested, query);
  auto limit = modular(bound.limit, query);
  auto step = pool_.literal_value(bound.step);
  if (!start || !start->coefficients.empty() || !start->constant.is_point() || !limit || !limit->is_point() || !step)
    return std::nullopt;
  Int128 size = signed_value(*step, width);
  ExactSum distance = size > 0 ? limit->low - start->constant.low : start->constant.low - limit->low;
  size = size < 0 ? -size : size;
  if (size == 0 || distance.is_broken()) return std::nullopt;
  Query attempt = query;
  const Interval full = unsigned_range(width);
  if (is_known_not_negative(distance, attempt) &&
      is_known_not_negative(ExactSum::literal(full.high) - distance, attempt))
    query = attempt;
  else
    distance =
        ExactSum::of(quantities_.plain("zext" + std::to_string(width) + "(" + quantities_.text(distance) + ")", full));
  if (auto trips = distance.divided(size)) return trips;
  query.conditions.insert("(" + quantities_.text(distance) + ") % " + to_string(size) + " == 0");
  return quantities_.whole_part(distance, size);
}

// --- interface ---

// Conditions that make one obligation true; nullopt if unknown.
std::optional<LaunchConditions> AccessExtents::conditions_of(const RangeObligation& obligation) {
  Scope own;
  const Scope& scope = guarded_scope(obligation.instruction, own);
  Query query{&scope, {}, 0};
  std::optional<Span> span;
  if (obligation.kind == RangeObligation::Kind::expression_range) {
    span = modular(obligation.expression, query);
  } else {
    const LinearForm form = forms_.form(obligation.form);
    // The obligation reads coefficients as signed numbers.
    if (has_sum(form)) {
      for (ExpressionId coefficient : form.coefficients)
        if (!exact(coefficient, Reading::as_signed, query)) return std::nullopt;
      for (const LoopOffset& offset : form.loops())
        if (!exact(offset.step, Reading::as_signed, query)) return std::nullopt;
    }
    span = span_of(form, query);
  }
  if (!span || !require_within(*span, obligation.range, query)) return std::nullopt;
  return query.conditions;
}

bool AccessExtents::discharge(ObligationId id, LaunchConditions& conditions) {
  const RangeObligation obligation = forms_.obligation(id);
  if (obligation.proved) return true;
  std::optional<LaunchConditions> needed;
  if (auto found = discharged_.find(id); found != discharged_.end()) {
    needed = found->second;
  } else {
    // An obligation must not be assumed in its own proof.
    if (!obligations_in_progress_.insert(id).second) return false;
    needed = conditions_of(obligation);
    obligations_in_progress_.erase(id);
    if (loops_in_progress_.empty() && obligations_in_progress_.empty()) discharged_[id] = needed;
  }
  if (!needed) return false;
  conditions.insert(needed->begin(), needed->end());
  return true;
}

std::optional<LaunchConditions> AccessExtents::discharge(std::span<const ObligationId> obligations) {
  LaunchConditions conditions;
  const std::vector<ObligationId> list(obligations.begin(), obligations.end());
  for (ObligationId id : list)
    if (!discharge(id, conditions)) return std::nullopt;
  return conditions;
}

std::optional<ByteRange> AccessExtents::bytes_of(InstructionId access, size_t address, unsigned bytes) {
  if (forms_.loops().irreducible()) return std::nullopt;
  budget_ = full_budget;
  const LinearForm form = forms_.address_form(access, address);
  if (form.width != 64) return std::nullopt;
  ByteRange range;
  const Operand base = function_.operands_of(access)[address + 1];
  if (base.is(OperandKind::value)) {
    auto conditions = discharge(forms_.obligations(base.as_value()));
    if (!conditions) return std::nullopt;
    range.conditions = *conditions;
  }
  Scope own;
  const Scope& scope = guarded_scope(access, own);
  Query query{&scope, {}, 0};
  auto span = span_of(form, query);
  if (!span) return std::nullopt;
  range.low = with_equalities(span->low, query);
  range.high = with_equalities(span->high, query) + ExactSum::literal(bytes);
  range.conditions.insert(query.conditions.begin(), query.conditions.end());
  if (form.kind == ValueClass::divergent_linear) {
    for (unsigned i = 0; i < 1u << form.condition_count; ++i) {
      const LinearForm& alternative = forms_.form(form.alternatives[i]);
      auto pointer = alternative.has_coefficients() ? pointer_of(alternative.coefficients[0]) : std::nullopt;
      if (i != 0 && pointer != range.pointer) pointer.reset();
      range.pointer = pointer;
      if (!pointer) break;
    }
  } else {
    range.pointer = pointer_of(form.kind == ValueClass::mod_linear ? form.addend : form.coefficients[0]);
  }
  return range;
}

bool AccessExtents::is_at_most(InstructionId access, const ExactSum& a, const ExactSum& b,
                               LaunchConditions& conditions) {
  if (const auto literal = (b - a).as_literal()) return *literal >= 0;
  budget_ = full_budget;
  Scope own;
  const Scope& scope = guarded_scope(access, own);
  Query query{&scope, {}, 0};
  if (!is_not_negative(b - a, query)) return false;
  conditions.insert(query.conditions.begin(), query.conditions.end());
  return true;
}

} // namespace ptxrewrite::ir
