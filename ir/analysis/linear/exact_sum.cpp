// See exact_sum.h.
#include "ir/analysis/linear/exact_sum.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>

namespace ptxrewrite::ir {

namespace {

constexpr Int128 coefficient_limit = Int128(1) << 100;

bool is_power_of_two(Int128 value) {
  return value > 0 && (value & (value - 1)) == 0;
}
unsigned log_two(Int128 value) {
  unsigned power = 0;
  while ((Int128(1) << power) < value)
    ++power;
  return power;
}
Int128 floor_divide(Int128 a, Int128 b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

std::optional<Interval> times(const Interval& a, const Interval& b) {
  Int128 corner[4];
  if (__builtin_mul_overflow(a.low, b.low, &corner[0]) || __builtin_mul_overflow(a.low, b.high, &corner[1]) ||
      __builtin_mul_overflow(a.high, b.low, &corner[2]) || __builtin_mul_overflow(a.high, b.high, &corner[3]))
    return std::nullopt;
  return Interval{*std::min_element(corner, corner + 4), *std::max_element(corner, corner + 4)};
}

} // namespace

// --- sums ---

ExactSum ExactSum::literal(Int128 value) {
  ExactSum sum;
  sum.add({}, value);
  return sum;
}
ExactSum ExactSum::of(QuantityId quantity) {
  ExactSum sum;
  sum.add(QuantityProduct(quantity), 1);
  return sum;
}
ExactSum ExactSum::of(const Term& term) {
  ExactSum sum;
  sum.add(term.first, term.second);
  return sum;
}
ExactSum ExactSum::broken() {
  ExactSum sum;
  sum.broken_ = true;
  return sum;
}

std::optional<Int128> ExactSum::as_literal() const {
  if (broken_ || terms_.size() > 1) return std::nullopt;
  if (terms_.empty()) return 0;
  return terms_.begin()->first.empty() ? std::optional(terms_.begin()->second) : std::nullopt;
}
Int128 ExactSum::common_divisor() const {
  Int128 common = 0;
  for (const auto& [product, coefficient] : terms_)
    for (Int128 other = coefficient < 0 ? -coefficient : coefficient; other != 0;) {
      const Int128 rest = common % other;
      common = other;
      other = rest;
    }
  return common;
}
Int128 ExactSum::literal_part() const {
  return !terms_.empty() && terms_.front().first.empty() ? terms_.front().second : 0; // the empty product sorts first
}

void ExactSum::add(const QuantityProduct& product, Int128 coefficient) {
  if (broken_ || coefficient == 0) return;
  auto row = std::ranges::lower_bound(terms_, product, std::less<>(), &Term::first);
  if (row == terms_.end() || !(row->first == product)) row = terms_.insert(row, {product, 0});
  row->second += coefficient; // cannot overflow: both are below the limit
  if (row->second == 0)
    terms_.erase(row);
  else if (row->second > coefficient_limit || row->second < -coefficient_limit)
    broken_ = true;
  if (terms_.size() > term_limit) broken_ = true;
  if (broken_) terms_.clear();
}

ExactSum ExactSum::operator+(const ExactSum& other) const {
  if (broken_ || other.broken_) return broken();
  ExactSum sum = *this;
  for (const auto& [product, coefficient] : other.terms_)
    sum.add(product, coefficient);
  return sum;
}

ExactSum ExactSum::operator-(const ExactSum& other) const {
  if (broken_ || other.broken_) return broken();
  ExactSum difference = *this;
  for (const auto& [product, coefficient] : other.terms_)
    difference.add(product, -coefficient);
  return difference;
}

ExactSum ExactSum::operator*(Int128 factor) const {
  if (broken_ || factor > coefficient_limit || factor < -coefficient_limit) return broken();
  ExactSum scaled;
  if (factor == 0) return scaled;
  scaled.terms_ = terms_; // the products stay in order
  for (auto& [product, coefficient] : scaled.terms_)
    if (__builtin_mul_overflow(coefficient, factor, &coefficient) || coefficient > coefficient_limit ||
        coefficient < -coefficient_limit)
      return broken();
  return scaled;
}

ExactSum ExactSum::operator*(const ExactSum& other) const {
  if (broken_ || other.broken_) return broken();
  ExactSum sum;
  for (const auto& [a, x] : terms_)
    for (const auto& [b, y] : other.terms_) {
      if (a.size() + b.size() > QuantityProduct::most_factors) return broken();
      QuantityProduct product;
      std::ranges::merge(a, b, std::back_inserter(product));
      Int128 coefficient;
      if (__builtin_mul_overflow(x, y, &coefficient) || coefficient > coefficient_limit ||
          coefficient < -coefficient_limit)
        return broken();
      sum.add(product, coefficient);
      if (sum.broken_) return sum;
    }
  return sum;
}

std::optional<ExactSum> ExactSum::divided(Int128 divisor) const {
  if (broken_ || divisor == 0) return std::nullopt;
  ExactSum quotient;
  for (const auto& [product, coefficient] : terms_) {
    if (coefficient % divisor != 0) return std::nullopt;
    quotient.add(product, coefficient / divisor);
  }
  return quotient;
}

std::optional<ExactSum> ExactSum::divided(const ExactSum& divisor) const {
  if (broken_ || divisor.broken_ || divisor.terms_.size() != 1) return std::nullopt;
  const auto& [factors, number] = *divisor.terms_.begin();
  ExactSum quotient;
  for (const auto& [product, coefficient] : terms_) {
    if (coefficient % number != 0 || !std::ranges::includes(product, factors)) return std::nullopt;
    QuantityProduct rest;
    std::ranges::set_difference(product, factors, std::back_inserter(rest));
    quotient.add(rest, coefficient / number);
  }
  return quotient;
}

std::pair<ExactSum, ExactSum> ExactSum::split(Int128 divisor) const {
  if (broken_) return {broken(), broken()};
  ExactSum whole, rest;
  for (const auto& [product, coefficient] : terms_) {
    const Int128 part = product.empty() || coefficient % divisor == 0 ? floor_divide(coefficient, divisor) : 0;
    whole.add(product, part);
    rest.add(product, coefficient - part * divisor);
  }
  return {whole, rest};
}

// --- quantities ---

QuantityId Quantities::intern(Quantity row) {
  auto [found, is_new] = index_.try_emplace(row.text);
  if (is_new) found->second = rows_.add(std::move(row));
  return found->second;
}

QuantityId Quantities::plain(const std::string& text, Interval range) {
  Quantity row;
  row.text = text;
  row.range = range;
  return intern(std::move(row));
}

std::optional<Interval> Quantities::interval(QuantityId id, const QuantityRanges& known,
                                             std::vector<QuantityId>* used) const {
  const Quantity& row = rows_[id];
  Interval range = row.range;
  auto narrow = [&](const Interval& other) {
    range = {std::max(range.low, other.low), std::min(range.high, other.high)};
  };
  if (auto found = known.find(id); found != known.end()) {
    narrow(found->second);
    if (used) used->push_back(id);
  }
  if (row.kind == Quantity::Kind::whole_part) {
    if (auto inside = interval(row.first, known, used))
      narrow({floor_divide(inside->low, row.divisor), floor_divide(inside->high, row.divisor)});
  } else if (row.kind == Quantity::Kind::maximum) {
    auto a = interval(row.first, known, used), b = interval(row.second, known, used);
    if (a && b) narrow({std::max(a->low, b->low), std::max(a->high, b->high)});
  }
  // Contradictory bounds mean that no launch reaches this point: keep the bounds that hold in every launch.
  if (range.low > range.high) range = row.range;
  return range;
}

std::optional<Interval> Quantities::term_by_term(const ExactSum& sum, const QuantityRanges& known,
                                                 std::vector<QuantityId>* used) const {
  Interval total{0, 0};
  for (const auto& [product, coefficient] : sum.terms()) {
    Interval term{coefficient, coefficient};
    for (QuantityId id : product) {
      auto factor = interval(id, known, used);
      auto next = factor ? times(term, *factor) : std::nullopt;
      if (!next) return std::nullopt;
      term = *next;
    }
    if (__builtin_add_overflow(total.low, term.low, &total.low) ||
        __builtin_add_overflow(total.high, term.high, &total.high))
      return std::nullopt;
  }
  return total;
}

std::optional<Interval> Quantities::interval(const ExactSum& sum, const QuantityRanges& known,
                                             std::vector<QuantityId>* used) const {
  if (sum.is_broken()) return std::nullopt;
  auto bounds = term_by_term(sum, known, used);
  // d * floor(x / d) is x minus a remainder: replace the quotients and bound the remainders.
  ExactSum without = sum;
  Interval remainders{0, 0};
  bool replaced = false;
  for (const auto& [product, coefficient] : sum.terms()) {
    if (product.size() != 1) continue;
    const Quantity& row = rows_[product.front()];
    if (row.kind != Quantity::Kind::whole_part || coefficient % row.divisor != 0) continue;
    const Int128 factor = coefficient / row.divisor;
    without = without + row.first * factor - ExactSum::of(product.front()) * coefficient;
    const Int128 most = -factor * (row.divisor - 1);
    remainders = {remainders.low + std::min<Int128>(0, most), remainders.high + std::max<Int128>(0, most)};
    replaced = true;
  }
  auto others = replaced && !without.is_broken() ? term_by_term(without, known, used) : std::nullopt;
  if (!others) return bounds;
  const Interval by_remainders{others->low + remainders.low, others->high + remainders.high};
  if (!bounds) return by_remainders;
  return Interval{std::max(bounds->low, by_remainders.low), std::min(bounds->high, by_remainders.high)};
}

ExactSum Quantities::whole_part(const ExactSum& sum, Int128 divisor) {
  if (sum.is_broken() || divisor <= 0) return ExactSum::broken();
  if (divisor == 1) return sum;
  auto [whole, rest] = sum.split(divisor);
  if (auto literal = rest.as_literal()) return whole + ExactSum::literal(floor_divide(*literal, divisor));
  const bool shift = is_power_of_two(divisor);
  // Division rounds negative numbers towards 0, but the caller guarantees only that the whole sum is not negative.
  if (!shift) {
    whole = ExactSum();
    rest = sum;
  }
  Quantity row;
  row.kind = Quantity::Kind::whole_part;
  row.first = rest;
  row.divisor = divisor;
  const bool simple = rest.terms().size() == 1;
  row.text = (simple ? "(" : "((") + text(rest) + (simple ? "" : ")") +
             (shift ? " >> " + std::to_string(log_two(divisor)) : " / " + to_string(divisor)) + ")";
  auto inside = interval(rest, {});
  if (!inside) return ExactSum::broken();
  row.range = {floor_divide(inside->low, divisor), floor_divide(inside->high, divisor)};
  return whole + ExactSum::of(intern(std::move(row)));
}

ExactSum Quantities::maximum(const ExactSum& a, const ExactSum& b, const QuantityRanges& known,
                             std::vector<QuantityId>* used) {
  if (a.is_broken() || b.is_broken()) return ExactSum::broken();
  if (a == b) return a;
  if (auto difference = interval(a - b, known, used)) {
    if (difference->low >= 0) return a;
    if (difference->high <= 0) return b;
  }
  auto first = interval(a, {}), second = interval(b, {});
  if (!first || !second) return ExactSum::broken();
  Quantity row;
  row.kind = Quantity::Kind::maximum;
  row.first = a;
  row.second = b;
  row.text = "max(" + text(a) + ", " + text(b) + ")";
  row.range = {std::max(first->low, second->low), std::max(first->high, second->high)};
  return ExactSum::of(intern(std::move(row)));
}

ExactSum Quantities::minimum(const ExactSum& a, const ExactSum& b, const QuantityRanges& known,
                             std::vector<QuantityId>* used) {
  return maximum(a * -1, b * -1, known, used) * -1;
}

// --- text ---

std::string Quantities::text(const ExactSum& sum) const {
  if (sum.is_broken()) return "0/0"; // undefined: a predicate that contains it is false
  std::string out;
  for (const auto& [product, coefficient] : sum.terms()) {
    if (product.empty()) continue;
    const Int128 size = coefficient < 0 ? -coefficient : coefficient;
    if (out.empty())
      out = coefficient < 0 ? "-" : "";
    else
      out += coefficient < 0 ? " - " : " + ";
    if (size != 1) out += to_string(size) + "*";
    for (size_t i = 0; i < product.size(); ++i)
      out += (i ? "*" : "") + rows_[product[i]].text;
  }
  const Int128 literal = sum.literal_part();
  if (out.empty()) return to_string(literal);
  if (literal != 0) out += (literal < 0 ? " - " : " + ") + to_string(literal < 0 ? -literal : literal);
  return out;
}

std::string Quantities::not_negative(const ExactSum& sum) const {
  if (sum.is_broken()) return "0/0 >= 0";
  Int128 common = 0;
  for (const auto& [product, coefficient] : sum.terms())
    if (!product.empty())
      for (Int128 rest = coefficient < 0 ? -coefficient : coefficient; rest != 0;)
        std::swap(common, rest), rest %= common;
  ExactSum left, right;
  for (const auto& [product, coefficient] : sum.terms()) {
    if (product.empty()) continue;
    ExactSum term = ExactSum::literal(1);
    for (QuantityId id : product)
      term = term * ExactSum::of(id);
    ExactSum& side = coefficient > 0 ? left : right;
    side = side + term * ((coefficient > 0 ? coefficient : -coefficient) / common);
  }
  const Int128 literal = common == 0 ? sum.literal_part() : floor_divide(sum.literal_part(), common);
  if (left.is_zero() && !right.is_zero()) return text(right) + " <= " + to_string(literal);
  if (right.is_zero()) return text(left) + " >= " + to_string(-literal);
  if (literal < 0) return text(left) + " >= " + text(right + ExactSum::literal(-literal));
  return text(left + ExactSum::literal(literal)) + " >= " + text(right);
}

} // namespace ptxrewrite::ir
