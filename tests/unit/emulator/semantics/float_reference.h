// Reference results of floating-point operations: the exact result, computed by MPFR, rounded once to a format.
// Independent of emulator/semantics. Without MPFR (PTXREWRITE_HAVE_MPFR) the tests that need it report that they are
// skipped.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#ifdef PTXREWRITE_HAVE_MPFR
#include <mpfr.h>
#endif

namespace ptxrewrite::test {

// A binary format: precision with the hidden bit, exponents of the largest and smallest normal number.
struct Format {
  int precision;
  int max_exponent;
  int min_exponent;
  int bits() const { return precision + std::bit_width(static_cast<unsigned>(max_exponent - min_exponent + 2)); }
};
inline constexpr Format f16_numbers = {11, 15, -14};
inline constexpr Format bf16_numbers = {8, 127, -126};
inline constexpr Format tf32_numbers = {11, 127, -126};
inline constexpr Format f32_numbers = {24, 127, -126};
inline constexpr Format f64_numbers = {53, 1023, -1022};

// The value of a code, including infinities and NaNs.
inline double decoded(const Format& format, uint64_t code) {
  const int fraction_bits = format.precision - 1;
  const int exponent_bits = format.bits() - format.precision;
  const auto fraction = static_cast<double>(code & ((uint64_t{1} << fraction_bits) - 1));
  const auto exponent = static_cast<int>((code >> fraction_bits) & ((1u << exponent_bits) - 1));
  const double sign = (code >> (format.bits() - 1)) & 1 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, format.min_exponent - fraction_bits);
  return sign *
         std::ldexp(std::ldexp(1.0, fraction_bits) + fraction, exponent - 1 + format.min_exponent - fraction_bits);
}
// The code of a number that the format represents exactly.
inline uint64_t encoded(const Format& format, double value) {
  const int fraction_bits = format.precision - 1;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (format.bits() - 1) : 0;
  const double magnitude = std::fabs(value);
  const auto infinity = static_cast<uint64_t>(format.max_exponent - format.min_exponent + 2) << fraction_bits;
  if (std::isnan(value)) return infinity + 1;
  if (std::isinf(value)) return sign | infinity;
  if (magnitude < std::ldexp(1.0, format.min_exponent))
    return sign | static_cast<uint64_t>(std::ldexp(magnitude, fraction_bits - format.min_exponent));
  const int exponent = std::ilogb(magnitude);
  const auto significand = static_cast<uint64_t>(std::ldexp(magnitude, fraction_bits - exponent));
  return sign | (significand + (static_cast<uint64_t>(exponent - format.min_exponent) << fraction_bits));
}

// splitmix64
class RandomBits {
public:
  explicit RandomBits(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

private:
  uint64_t state_;
};

// Boundary codes of a format: zeros, subnormal numbers, powers of two and their neighbours, halfway cases, the largest
// numbers, infinities, NaNs, all with both signs.
inline std::vector<uint64_t> edge_codes(const Format& format) {
  const int fraction_bits = format.precision - 1;
  const uint64_t one = uint64_t{1} << fraction_bits; // one step of the exponent field
  const uint64_t infinity = one * static_cast<uint64_t>(format.max_exponent - format.min_exponent + 2);
  const uint64_t bias = one * static_cast<uint64_t>(1 - format.min_exponent);
  std::vector<uint64_t> codes = {0,
                                 1,
                                 2,
                                 3,
                                 one / 2,
                                 one - 2,
                                 one - 1,
                                 one,
                                 one + 1,
                                 2 * one,
                                 2 * one - 1,
                                 infinity,
                                 infinity - 1,
                                 infinity - 2,
                                 infinity - one,
                                 infinity + 1,
                                 infinity + one / 2,
                                 infinity + one / 2 + 5,
                                 infinity + one - 1};
  for (uint64_t exponent :
       {bias, bias - one, bias + one, bias + 2 * one, bias - 3 * one,
        bias + one * static_cast<uint64_t>(format.precision), bias - one * static_cast<uint64_t>(format.precision)})
    for (uint64_t fraction : {uint64_t{0}, uint64_t{1}, one / 2, one / 2 + 1, one - 1, one / 3})
      codes.push_back(exponent + fraction);
  const size_t count = codes.size();
  for (size_t i = 0; i < count; ++i)
    codes.push_back(codes[i] | uint64_t{1} << (format.bits() - 1));
  return codes;
}

#ifdef PTXREWRITE_HAVE_MPFR

// A number of arbitrary precision.
class Number {
public:
  explicit Number(double value = 0, mpfr_prec_t precision = 53) {
    mpfr_init2(number_, precision);
    mpfr_set_d(number_, value, MPFR_RNDN);
  }
  Number(const Number& other) = delete;
  Number& operator=(const Number& other) = delete;
  ~Number() { mpfr_clear(number_); }
  operator mpfr_ptr() { return number_; }
  operator mpfr_srcptr() const { return number_; }

private:
  mpfr_t number_;
};

// Rounding modes in the order of semantics::Rounding.
inline constexpr mpfr_rnd_t mpfr_roundings[] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDD, MPFR_RNDU};

struct Rounded {
  double value = 0;
  bool tiny = false; // below the normal numbers after rounding with unbounded exponent
};

// The result of `operation(result, rounding)`, an MPFR function with its operands, rounded to the format. The operation
// returns MPFR's ternary value.
template <class Operation> Rounded rounded(const Format& format, mpfr_rnd_t rounding, Operation operation) {
  Number result(0, format.precision);
  int ternary = operation(static_cast<mpfr_ptr>(result), rounding);
  Rounded answer;
  if (mpfr_regular_p(result)) answer.tiny = mpfr_get_exp(result) - 1 < format.min_exponent;
  const mpfr_exp_t old_min = mpfr_get_emin(), old_max = mpfr_get_emax();
  mpfr_set_emin(format.min_exponent + 1 - (format.precision - 1));
  mpfr_set_emax(format.max_exponent + 1);
  ternary = mpfr_check_range(result, ternary, rounding);
  mpfr_subnormalize(result, ternary, rounding);
  mpfr_set_emin(old_min);
  mpfr_set_emax(old_max);
  answer.value = mpfr_get_d(result, MPFR_RNDN);
  return answer;
}
template <class Operation> uint64_t rounded_code(const Format& format, mpfr_rnd_t rounding, Operation operation) {
  return encoded(format, rounded(format, rounding, operation).value);
}

inline Rounded sum(const Format& format, mpfr_rnd_t mode, double a, double b) {
  const Number x(a), y(b);
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) { return mpfr_add(d, x, y, r); });
}
inline Rounded difference(const Format& format, mpfr_rnd_t mode, double a, double b) {
  const Number x(a), y(b);
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) { return mpfr_sub(d, x, y, r); });
}
inline Rounded product(const Format& format, mpfr_rnd_t mode, double a, double b) {
  const Number x(a), y(b);
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) { return mpfr_mul(d, x, y, r); });
}
inline Rounded quotient(const Format& format, mpfr_rnd_t mode, double a, double b) {
  const Number x(a), y(b);
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) { return mpfr_div(d, x, y, r); });
}
inline Rounded root(const Format& format, mpfr_rnd_t mode, double a) {
  const Number x(a);
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) { return mpfr_sqrt(d, x, r); });
}
inline Rounded fused(const Format& format, mpfr_rnd_t mode, double a, double b, double c) {
  const Number x(a), y(b), z(c);
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) { return mpfr_fma(d, x, y, z, r); });
}
inline Rounded converted(const Format& format, mpfr_rnd_t mode, double a) {
  const Number x(a);
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) { return mpfr_set(d, x, r); });
}

#endif

} // namespace ptxrewrite::test
