// Obligations as text in the side file's expression language, which the loader evaluates before a launch.
#include "ir/analysis/linear/form_bounds.h"
#include "ir/analysis/linear/linear_state.h"

namespace ptxrewrite::ir {

using State = LinearForms::State;

namespace {

constexpr std::array<std::string_view, form_index::count> extent_names = {"",         "ntid.x",   "ntid.y",  "ntid.z",
                                                                          "nctaid.x", "nctaid.y", "nctaid.z"};

// A sum in exact integers under construction: the literal part is kept separate from the terms.
struct Corner {
  Int128 literal = 0;
  std::string terms;

  void add(const std::string& term) { terms += (terms.empty() ? "" : " + ") + term; }
  std::string text() const {
    if (terms.empty()) return to_string(literal);
    if (literal == 0) return terms;
    return terms + (literal < 0 ? " - " : " + ") + to_string(literal < 0 ? -literal : literal);
  }
  // Parenthesised unless it is a single number.
  std::string factor() const { return terms.empty() && literal >= 0 ? text() : "(" + text() + ")"; }
};

class PredicateWriter {
public:
  explicit PredicateWriter(const State& state) : state_(state) {}

  std::string write(const LinearForm& form, const Interval& range) {
    if (form.kind == ValueClass::divergent_linear) {
      for (unsigned i = 0; i < 1u << form.condition_count; ++i)
        if (!write_one(state_.at(form.alternatives[i]), range)) return {};
      return finished();
    }
    return write_one(form, range) ? finished() : std::string();
  }

  // Does write() give a text?
  bool can_write(const LinearForm& form) const {
    if (form.kind != ValueClass::divergent_linear) return has_extremes(form);
    for (unsigned i = 0; i < 1u << form.condition_count; ++i)
      if (!has_extremes(state_.at(form.alternatives[i]))) return false;
    return true;
  }

  std::optional<FormBounds> bounds(const LinearForm& form) {
    FormBounds all;
    const unsigned alternatives = form.kind == ValueClass::divergent_linear ? 1u << form.condition_count : 1;
    for (unsigned i = 0; i < alternatives; ++i) {
      Corner low, high;
      const bool one_of_several = form.kind == ValueClass::divergent_linear;
      if (!extremes(one_of_several ? state_.at(form.alternatives[i]) : form, low, high)) return std::nullopt;
      all.low = i == 0 ? low.text() : "min(" + all.low + ", " + low.text() + ")";
      all.high = i == 0 ? high.text() : "max(" + all.high + ", " + high.text() + ")";
    }
    all.conditions = conditions_;
    return all;
  }

  std::string write(ExpressionId expression, const Interval& range) {
    Corner sum;
    const Expression& row = state_.pool[expression];
    if (row.kind == ExpressionKind::sum) {
      sum.literal = signed_value(static_cast<uint64_t>(row.offset), row.width);
      for (const ExpressionTerm& term : state_.pool.terms(expression)) {
        std::string text = to_string(Int128(signed_value(term.coefficient, row.width)));
        if (text == "1") text.clear();
        for (ExpressionId factor : state_.pool.factors(term.monomial))
          text += (text.empty() ? "" : "*") + state_.pool.print_predicate(factor);
        sum.add(text);
      }
    } else {
      sum.add(state_.pool.print_predicate(expression));
    }
    require_at_least(sum, range.low);
    require_at_most(sum, range.high);
    return finished();
  }

private:
  std::string finished() const { return conditions_.empty() ? "1 == 1" : conditions_; }

  void require(const std::string& condition) {
    if (conditions_.find(condition) == std::string::npos)
      conditions_ += (conditions_.empty() ? "" : " && ") + condition;
  }
  void require_at_least(const Corner& sum, Int128 bound) {
    if (!sum.terms.empty() || sum.literal < bound) require(sum.text() + " >= " + to_string(bound));
  }
  void require_at_most(const Corner& sum, Int128 bound) {
    if (!sum.terms.empty() || sum.literal > bound) require(sum.text() + " <= " + to_string(bound));
  }

  bool has_corners(const LinearForm& form) const { return form.has_coefficients() && state_.is_evaluable(form); }
  bool has_extremes(const LinearForm& form) const {
    return has_corners(form) &&
           std::ranges::all_of(form.loops(), [&](const LoopOffset& offset) { return has_trips(offset.loop); });
  }
  // Is the number of trips known at launch?
  bool has_trips(LoopId loop) const {
    const TripBound& bound = state_.trip_bounds[loop.index()];
    const ExpressionPool& pool = state_.pool;
    if (!bound.known || !pool[bound.step].evaluable || !pool[bound.limit].evaluable) return false;
    const std::optional<uint64_t> step = pool.literal_value(bound.step);
    if (bound.relation == Comparison::not_equal) {
      const std::optional<ExpressionId> start = state_.scalar(bound.tested);
      return start && step && pool[*start].evaluable;
    }
    return has_corners(state_.at(bound.tested)) && !goes_wrong_way(bound, step);
  }
  bool goes_wrong_way(const TripBound& bound, std::optional<uint64_t> literal) const {
    if (!literal) return bound.reversed;
    const int64_t step = signed_value(*literal, state_.pool.width(bound.limit));
    return bound.reversed ? step >= 0 : step <= 0;
  }

  // Extremes including loop offsets.
  bool extremes(const LinearForm& form, Corner& low, Corner& high) {
    if (!corners(form, low, high)) return false;
    for (const LoopOffset& offset : form.loops()) {
      std::string most;
      if (!trips(offset.loop, most)) return false;
      add_product(offset.step, most, low, high);
    }
    return true;
  }

  bool write_one(const LinearForm& form, const Interval& range) {
    Corner low, high;
    if (!extremes(form, low, high)) return false;
    require_at_least(low, range.low);
    require_at_most(high, range.high);
    return true;
  }

  // The form's extremes over all threads of the launch, without loop offsets.
  bool corners(const LinearForm& form, Corner& low, Corner& high) {
    if (!has_corners(form)) return false;
    ExpressionId constant = form.coefficients[form_index::constant];
    if (auto value = state_.pool.literal_value(constant))
      low.literal = high.literal = signed_value(*value, form.width);
    else {
      low.add(state_.pool.print_predicate(constant));
      high.add(state_.pool.print_predicate(constant));
    }
    for (unsigned place = 1; place < form_index::count; ++place)
      if (!state_.pool.is_zero(form.coefficients[place]))
        add_product(form.coefficients[place], "(" + std::string(extent_names[place]) + " - 1)", low, high);
    return true;
  }

  // Adds coefficient * extent, extent >= 0, to the corner that it affects.
  void add_product(ExpressionId coefficient, const std::string& extent, Corner& low, Corner& high) {
    std::string text =
        state_.pool.is_literal(coefficient, 1) ? extent : state_.pool.print_predicate(coefficient) + "*" + extent;
    Interval bounds = state_.pool.interval(coefficient, state_.limits);
    if (bounds.low >= 0)
      high.add(text);
    else if (bounds.high <= 0)
      low.add(text);
    else {
      high.add("max(0, " + text + ")");
      low.add("min(0, " + text + ")");
    }
  }

  // The largest trip number; the requirements for it are added to the conditions.
  bool trips(LoopId loop, std::string& most) {
    const TripBound& bound = state_.trip_bounds[loop.index()];
    const ExpressionPool& pool = state_.pool;
    if (!bound.known || !pool[bound.step].evaluable || !pool[bound.limit].evaluable) return false;
    if (bound.relation == Comparison::not_equal) return trips_until_equal(bound, most);
    unsigned width = pool.width(bound.limit);
    bool is_signed = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_equal_signed;
    Int128 slack = bound.relation == Comparison::less_signed || bound.relation == Comparison::less_unsigned ? 0 : 1;
    Interval range = is_signed ? signed_range(width) : unsigned_range(width);
    Corner low, high, limit;
    if (!corners(state_.at(bound.tested), low, high)) return false;
    if (auto value = pool.literal_value(bound.limit))
      limit.literal = is_signed ? Int128(signed_value(*value, width)) : Int128(*value);
    else
      limit.add(is_signed ? pool.print_predicate(bound.limit)
                          : "zext" + std::to_string(width) + "(" + pool.print_predicate(bound.limit) + ")");
    require_at_least(low, range.low);
    require_at_most(high, range.high);
    auto literal = pool.literal_value(bound.step);
    Int128 step = literal ? Int128(signed_value(*literal, width)) : 0;
    std::string size = literal ? to_string(step < 0 ? -step : step) : pool.print_predicate(bound.step);
    if (goes_wrong_way(bound, literal)) return false;
    if (!literal) require(size + " > 0");
    // The last tested value must not wrap; the distance is divided by the step, rounded up.
    Corner last = limit, distance;
    if (!bound.reversed) {
      last.literal += slack - 1;
      distance = limit;
      subtract(distance, low);
    } else {
      last.literal += 1 - slack;
      distance = high;
      subtract(distance, limit);
    }
    if (literal)
      last.literal += step;
    else
      last.add(size);
    if (bound.reversed)
      require_at_least(last, range.low);
    else
      require_at_most(last, range.high);
    distance.literal += slack;
    if (size == "1") {
      most = "max(0, " + distance.text() + ")";
      return true;
    }
    distance.literal -= 1;
    distance.add(size);
    most = "max(0, " + distance.factor() + " / " + size + ")";
    return true;
  }

  static void subtract(Corner& from, const Corner& what) {
    from.literal -= what.literal;
    if (!what.terms.empty()) from.add("-1*(" + what.terms + ")");
  }

  bool trips_until_equal(const TripBound& bound, std::string& most) {
    const ExpressionPool& pool = state_.pool;
    unsigned width = pool.width(bound.limit);
    auto start = state_.scalar(bound.tested);
    auto step = pool.literal_value(bound.step);
    if (!start || !step || !pool[*start].evaluable) return false;
    Int128 size = signed_value(*step, width);
    std::string first = pool.print_predicate(*start), last = pool.print_predicate(bound.limit);
    if (size < 0) std::swap(first, last), size = -size;
    std::string distance = "zext" + std::to_string(width) + "(" + last + " - " + first + ")";
    most = size == 1 ? distance : "(" + distance + " / " + to_string(size) + ")";
    if (size != 1) require(distance + " % " + to_string(size) + " == 0");
    return true;
  }

  const State& state_;
  std::string conditions_;
};

} // namespace

std::optional<FormBounds> bounds_at_launch(const LinearForms& forms, const LinearForm& form) {
  return PredicateWriter(forms.state()).bounds(form);
}

std::optional<Interval> bounds_in_all_launches(const LinearForms& forms, const LinearForm& form, BlockId block) {
  return const_cast<State&>(forms.state()).form_bounds_in(form, block); // fills caches of facts
}

bool State::has_predicate(const RangeObligation& obligation) const {
  if (obligation.kind == RangeObligation::Kind::form_range)
    return PredicateWriter(*this).can_write(at(obligation.form));
  return pool[obligation.expression].evaluable;
}

std::string State::predicate(const RangeObligation& obligation) const {
  if (obligation.kind == RangeObligation::Kind::form_range)
    return PredicateWriter(*this).write(at(obligation.form), obligation.range);
  return pool[obligation.expression].evaluable ? PredicateWriter(*this).write(obligation.expression, obligation.range)
                                               : std::string();
}

} // namespace ptxrewrite::ir
