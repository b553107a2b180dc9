// Sums of products of launch quantities in exact integers, in which bounds of addresses are computed, and their text in
// the side file's language (launch/predicate.h).
//
//   4*sext32(P0)*ntid.x + 16*(sext32(P0) >> 2) + P1 - 4
//
// A quantity is a parameter, a dimension, or the floor of a quotient or the maximum of sums. Products are expanded so
// that equal sums are equal as terms: 4*n*(n - 1) + 4*n is 4*n*n.
#pragma once

#include "ir/analysis/linear/expression.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

struct QuantityTag;
using QuantityId = Id<QuantityTag>;

// A product of quantities, sorted, with repetition; the empty product is 1.
class QuantityProduct {
public:
  static constexpr size_t most_factors = 6;
  using value_type = QuantityId;

  QuantityProduct() = default;
  explicit QuantityProduct(QuantityId factor) : factors_{factor}, size_(1) {}

  const QuantityId* begin() const { return factors_.data(); }
  const QuantityId* end() const { return factors_.data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  QuantityId front() const { return factors_[0]; }
  QuantityId operator[](size_t i) const { return factors_[i]; }
  // Appends a factor that is not smaller than the last one.
  void push_back(QuantityId factor) { factors_[size_++] = factor; }

  bool operator==(const QuantityProduct& other) const { return std::ranges::equal(*this, other); }
  bool operator<(const QuantityProduct& other) const { return std::ranges::lexicographical_compare(*this, other); }

private:
  std::array<QuantityId, most_factors> factors_{};
  uint32_t size_ = 0;
};

// A sum of products of launch quantities in exact integers. It becomes broken when it has too many terms or a
// coefficient overflows; a result computed from a broken sum is broken.
class ExactSum {
public:
  ExactSum() = default; // 0
  static ExactSum literal(Int128 value);
  static ExactSum of(QuantityId quantity);
  static ExactSum of(const std::pair<QuantityProduct, Int128>& term);
  static ExactSum broken();

  bool is_broken() const { return broken_; }
  bool is_zero() const { return !broken_ && terms_.empty(); }
  std::optional<Int128> as_literal() const;
  Int128 common_divisor() const; // of the coefficients; 0 of an empty sum
  Int128 literal_part() const;
  // Products in order, with their coefficients, which are not 0; the empty product is the literal.
  using Term = std::pair<QuantityProduct, Int128>;
  const std::vector<Term>& terms() const { return terms_; }

  ExactSum operator+(const ExactSum& other) const;
  ExactSum operator-(const ExactSum& other) const;
  ExactSum operator*(const ExactSum& other) const;
  ExactSum operator*(Int128 factor) const;
  // The quotient if every coefficient is a multiple of `divisor`, otherwise nullopt.
  std::optional<ExactSum> divided(Int128 divisor) const;
  // The sum that times `divisor` gives this sum; nullopt if there is none. The divisor has to be one product.
  std::optional<ExactSum> divided(const ExactSum& divisor) const;
  // Splits this sum into divisor * first + second, where no coefficient of second is a multiple of the divisor.
  std::pair<ExactSum, ExactSum> split(Int128 divisor) const;

  bool operator==(const ExactSum& other) const = default;

private:
  static constexpr size_t term_limit = 24;
  void add(const QuantityProduct& product, Int128 coefficient);

  std::vector<Term> terms_;
  bool broken_ = false;
};

struct Quantity {
  std::string text; // as a factor of a product
  Interval range;   // valid in every launch
  // Operands of the quantity, from which tighter bounds follow: whole_part is floor(first / divisor), maximum is
  // max(first, second).
  enum class Kind : uint8_t { plain, whole_part, maximum } kind = Kind::plain;
  ExactSum first, second;
  Int128 divisor = 1;
};

// Ranges of quantities that hold in some part of a kernel.
using QuantityRanges = std::map<QuantityId, Interval>;

class Quantities {
public:
  const Quantity& operator[](QuantityId id) const { return rows_[id]; }
  QuantityId plain(const std::string& text, Interval range);

  // Bounds of a sum; nullopt if a number does not fit 128 bits. Inserts into `used` the quantities whose narrowed
  // ranges were used.
  std::optional<Interval> interval(const ExactSum& sum, const QuantityRanges& known,
                                   std::vector<QuantityId>* used = nullptr) const;
  std::optional<Interval> interval(QuantityId id, const QuantityRanges& known, std::vector<QuantityId>* used) const;

  // floor(sum / divisor), divisor > 0. Unless the divisor is a power of two, `sum` must not be negative.
  ExactSum whole_part(const ExactSum& sum, Int128 divisor);
  // The maximum of both; `known` may show which it is.
  ExactSum maximum(const ExactSum& a, const ExactSum& b, const QuantityRanges& known,
                   std::vector<QuantityId>* used = nullptr);
  ExactSum minimum(const ExactSum& a, const ExactSum& b, const QuantityRanges& known,
                   std::vector<QuantityId>* used = nullptr);

  std::string text(const ExactSum& sum) const;
  // The condition that the sum is not negative: `sext32(P0) >= 1`, `4*sext32(P0) + P2 <= P1`.
  std::string not_negative(const ExactSum& sum) const;

private:
  QuantityId intern(Quantity row);
  std::optional<Interval> term_by_term(const ExactSum& sum, const QuantityRanges& known,
                                       std::vector<QuantityId>* used) const;

  Table<QuantityId, Quantity> rows_;
  std::unordered_map<std::string, QuantityId> index_;
};

} // namespace ptxrewrite::ir
