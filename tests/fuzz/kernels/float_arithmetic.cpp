#include "tests/fuzz/kernels/float_arithmetic.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

namespace ptxrewrite::fuzz {

namespace {

int host_mode(Rounding rounding) {
  switch (rounding) {
  case Rounding::nearest:
    return FE_TONEAREST;
  case Rounding::zero:
    return FE_TOWARDZERO;
  case Rounding::down:
    return FE_DOWNWARD;
  default:
    return FE_UPWARD;
  }
}

} // namespace

const char* rounding_name(Rounding rounding) {
  static constexpr const char* names[] = {"rn", "rz", "rm", "rp"};
  return names[static_cast<size_t>(rounding)];
}

RoundingScope::RoundingScope(Rounding rounding) {
  std::fesetround(host_mode(rounding));
}
RoundingScope::~RoundingScope() {
  std::fesetround(FE_TONEAREST);
}

float to_float(uint64_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}
double to_double(uint64_t bits) {
  return std::bit_cast<double>(bits);
}
uint64_t bits_of(float value) {
  return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(value);
}
uint64_t bits_of(double value) {
  return std::isnan(value) ? 0x7fffffffffffffff : std::bit_cast<uint64_t>(value);
}

float flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
float flush_by(float result, float scaled_result) {
  return std::fabs(scaled_result) < 0x1p-126f * flush_scale ? std::copysign(0.0f, result) : result;
}
void scale_factors(float& a, float& b) {
  (std::fabs(a) < std::fabs(b) ? a : b) *= flush_scale;
}
float flush_if(bool wanted, float value) {
  return wanted ? flush(value) : value;
}
float saturate(float value) {
  return value > 0 ? std::fmin(value, 1.0f) : 0.0f;
}
double saturate(double value) {
  return value > 0 ? std::fmin(value, 1.0) : 0.0;
}

bool is_half_nan(uint64_t bits) {
  return (bits & 0x7fff) > 0x7c00;
}

double half_value(uint64_t bits) {
  const auto exponent = static_cast<int>(bits >> 10 & 0x1f);
  const auto mantissa = static_cast<double>(bits & 0x3ff);
  double value = 0;
  if (exponent == 31)
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else
    value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

uint64_t flush_half(uint64_t bits) {
  return (bits & 0x7c00) == 0 ? bits & 0x8000 : bits;
}

uint64_t round_to_half(ExactNumber exact, Rounding rounding, bool negative_zero) {
  if (exact != exact) return 0x7fff;
  if (exact == 0) return negative_zero ? 0x8000 : 0;
  const bool negative = exact < 0;
  ExactNumber magnitude = negative ? -exact : exact;
  const uint64_t sign = negative ? 0x8000 : 0;
  const bool away = (rounding == Rounding::up && !negative) || (rounding == Rounding::down && negative);
  if (magnitude > 1e30) {
    const bool infinite = magnitude > std::numeric_limits<double>::max();
    return sign | (infinite || rounding == Rounding::nearest || away ? 0x7c00 : 0x7bff);
  }
  // The unit in the last place is 2^(exponent - 10), at least 2^-24.
  int exponent = -14;
  while (exponent < 110 && magnitude >= ExactNumber(std::ldexp(1.0, exponent + 1)))
    ++exponent;
  const ExactNumber units = magnitude * ExactNumber(std::ldexp(1.0, 10 - exponent));
  auto whole = static_cast<__int128>(units);
  const ExactNumber rest = units - ExactNumber(whole);
  if (rounding == Rounding::nearest ? rest > 0.5 || (rest == 0.5 && (whole & 1) != 0) : away && rest > 0) ++whole;
  // A carry out of the mantissa correctly propagates into the exponent.
  const __int128 encoded = whole + (__int128(exponent + 14) << 10);
  if (encoded >= 0x7c00) return sign | (rounding == Rounding::nearest || away ? 0x7c00 : 0x7bff);
  return sign | static_cast<uint64_t>(encoded);
}

bool is_tiny_half(ExactNumber exact) {
  const ExactNumber magnitude = exact < 0 ? -exact : exact;
  // The largest number of 11 bits below 2^-14 is 2^-14 - 2^-25; from halfway up on, values round to 2^-14.
  const ExactNumber halfway = ExactNumber(0x1p-14) - ExactNumber(0x1p-26);
  return magnitude < halfway;
}

uint64_t double_to_half(double value, Rounding rounding) {
  return round_to_half(value, rounding, std::signbit(value));
}

template <class Float> Float minimum(Float a, Float b, bool nan_wins) {
  if (std::isnan(a) || std::isnan(b)) {
    if (nan_wins) return std::numeric_limits<Float>::quiet_NaN();
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class Float> Float maximum(Float a, Float b, bool nan_wins) {
  if (std::isnan(a) || std::isnan(b)) return minimum(a, b, nan_wins);
  return -minimum(-a, -b, nan_wins);
}
template float minimum(float, float, bool);
template double minimum(double, double, bool);
template float maximum(float, float, bool);
template double maximum(double, double, bool);

double round_to_integral(double value, Rounding rounding) {
  const RoundingScope scope(rounding);
  return std::nearbyint(value);
}

uint64_t to_integer(double value, Rounding rounding, unsigned bits, bool is_signed, bool wide) {
  if (std::isnan(value)) return wide ? uint64_t(1) << (bits - 1) : 0;
  const double rounded = round_to_integral(value, rounding);
  const double least = is_signed ? -std::ldexp(1.0, static_cast<int>(bits) - 1) : 0.0;
  const double beyond = std::ldexp(1.0, static_cast<int>(bits) - (is_signed ? 1 : 0));
  if (rounded <= least) return is_signed ? uint64_t(1) << (bits - 1) : 0;
  if (rounded >= beyond) return is_signed ? (uint64_t(1) << (bits - 1)) - 1 : ~uint64_t(0) >> (64 - bits);
  return static_cast<uint64_t>(static_cast<__int128>(rounded));
}

} // namespace ptxrewrite::fuzz
