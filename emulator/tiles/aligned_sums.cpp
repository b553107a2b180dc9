// Sums of products as Hopper's tensor cores compute them.
#include "emulator/tiles/aligned_sums.h"

#include "emulator/tiles/matrix_tile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ptxrewrite::emulator {
namespace {

using ir::ScalarType;

constexpr unsigned most_k = 64; // stored elements along k
constexpr int f32_fraction = 23, f32_smallest = -126;

// The number significand * 2^last. `exponent` determines the alignment of a sum's terms.
struct Term {
  int64_t significand = 0;
  int last = 0;
  int exponent = std::numeric_limits<int>::min();
};

// A finite number of a type whose smallest normal number is 2^smallest.
Term to_term(float value, int smallest) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const int encoded = static_cast<int>(bits >> f32_fraction & 0xff);
  const int exponent = std::max(encoded - 127, f32_smallest);
  int64_t significand = bits & ((1u << f32_fraction) - 1);
  if (encoded != 0) significand |= 1 << f32_fraction;
  if (significand == 0) return {};
  return {std::signbit(value) ? -significand : significand, exponent - f32_fraction, std::max(exponent, smallest)};
}

Term product(const Term& a, const Term& b) {
  if (a.significand == 0 || b.significand == 0) return {};
  return {a.significand * b.significand, a.last + b.last, a.exponent + b.exponent};
}

// Towards zero. Terms of tensor cores' types have at most 22 significant bits, and those of f32 are aligned by at most
// two bits to the left: nothing overflows.
int64_t shifted(int64_t significand, int left) {
  const uint64_t size = significand < 0 ? -static_cast<uint64_t>(significand) : static_cast<uint64_t>(significand);
  const uint64_t moved = left >= 0 ? size << std::min(left, 63) : left > -64 ? size >> -left : 0;
  return significand < 0 ? -static_cast<int64_t>(moved) : static_cast<int64_t>(moved);
}

// The sum of terms: aligned, cut off, exact. Terms of zero do not count.
Term add_aligned(const Term* terms, unsigned count, unsigned fraction) {
  int largest = std::numeric_limits<int>::min();
  for (unsigned i = 0; i < count; ++i)
    largest = std::max(largest, terms[i].exponent);
  Term sum;
  if (largest == std::numeric_limits<int>::min()) return sum;
  sum.last = largest - static_cast<int>(fraction);
  for (unsigned i = 0; i < count; ++i)
    if (terms[i].significand != 0) sum.significand += shifted(terms[i].significand, terms[i].last - sum.last);
  return sum;
}

// Keeps the first `bits` bits of a sum, and for bits = 0 those of f32 with the last one set if any were lost.
float to_number(const Term& sum, unsigned bits) {
  const bool is_odd = bits == 0;
  uint64_t size = static_cast<uint64_t>(std::abs(sum.significand));
  const int width = 64 - std::countl_zero(size);
  const int excess = std::max(width - static_cast<int>(is_odd ? f32_fraction + 1 : bits), 0);
  const bool loses = (size >> excess << excess) != size;
  size >>= excess;
  if (is_odd && loses) size |= 1;
  const double value = std::ldexp(static_cast<double>(size), sum.last + excess);
  if (is_odd && value <= 0x1p-25) return 0; // a sum that f16 rounds to zero has no sign
  return static_cast<float>(sum.significand < 0 ? -value : value);
}

// The products of one result, in the order of k.
class Products {
public:
  explicit Products(const AlignedSums& law) : law_(law) {}

  void add(float a, float b) {
    finite_ = finite_ && std::isfinite(a) && std::isfinite(b);
    special_ += static_cast<double>(a) * b;
    if (finite_) terms_[count_] = product(to_term(a, law_.a_exponent), to_term(b, law_.b_exponent));
    ++count_;
  }

  float added_to(float accumulator) const {
    if (!finite_ || !std::isfinite(accumulator)) return static_cast<float>(special_ + accumulator);
    if (law_.in_two_halves) return accumulator + sum_of_halves();
    Term terms[most_k + 1];
    std::copy_n(terms_, count_, terms);
    return add(terms, count_, accumulator);
  }

private:
  // Adds the accumulator to `count` terms; `terms` has room for one more.
  float add(Term* terms, unsigned count, float accumulator) const {
    terms[count] = to_term(accumulator, f32_smallest);
    return to_number(add_aligned(terms, count + 1, law_.fraction), law_.bits);
  }

  float sum_of_halves() const {
    float sum = 0;
    for (unsigned half = 0; half < 2; ++half) {
      Term terms[most_k / 2 + 1];
      unsigned count = 0;
      for (unsigned i = 0; i < count_; ++i)
        if (i % 4 / 2 == half) terms[count++] = terms_[i];
      sum = add(terms, count, sum);
    }
    return sum;
  }

  const AlignedSums& law_;
  Term terms_[most_k];
  unsigned count_ = 0;
  bool finite_ = true;
  double special_ = 0; // infinite or NaN, where a factor is
};

int smallest_exponent(ScalarType type) {
  switch (type) {
  case ScalarType::e4m3:
    return -6;
  case ScalarType::f16:
  case ScalarType::e5m2:
    return -14;
  default: // bf16, tf32
    return f32_smallest;
  }
}

bool has_eight_bits(ScalarType type) {
  return type == ScalarType::e4m3 || type == ScalarType::e5m2;
}

} // namespace

std::optional<AlignedSums> hopper_sums(const SummedForm& form) {
  const bool bytes = has_eight_bits(form.a) && has_eight_bits(form.b);
  const bool halves =
      form.a == form.b && (form.a == ScalarType::f16 || form.a == ScalarType::bf16 || form.a == ScalarType::tf32);
  if (!bytes && !halves) return std::nullopt;
  if (form.sparse && (bytes || form.is_group)) return std::nullopt;
  AlignedSums law{
      .a_exponent = smallest_exponent(form.a), .b_exponent = smallest_exponent(form.b), .fraction = 25, .bits = 24};
  if (bytes && form.is_group) {
    law.fraction = 13;
    law.bits = 14;
  } else if (bytes) { // by two products of f16 numbers, to which the elements are converted
    if (form.has_half_sums) return std::nullopt;
    law.a_exponent = law.b_exponent = smallest_exponent(ScalarType::f16);
    law.in_two_halves = true;
  }
  if (form.has_half_sums) law.bits = 0;
  return law;
}

void multiply_tile(const AlignedSums& law, const float* a, const float* b, unsigned rows, unsigned k, float* d) {
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < tile_columns; ++column) {
      Products products(law);
      for (unsigned i = 0; i < k; ++i)
        products.add(a[row * k + i], b[i * tile_columns + column]);
      float& sum = d[row * tile_columns + column];
      sum = products.added_to(sum);
    }
}

void multiply_sparse_tile(const AlignedSums& law, const float* a, const uint8_t* columns, const float* b, unsigned rows,
                          unsigned stored, float* d) {
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < tile_columns; ++column) {
      Products products(law);
      for (unsigned i = row * stored; i < (row + 1) * stored; ++i)
        products.add(a[i], b[columns[i] * tile_columns + column]);
      float& sum = d[row * tile_columns + column];
      sum = products.added_to(sum);
    }
}

} // namespace ptxrewrite::emulator
