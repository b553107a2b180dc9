// Floating point for the oracle: the host's arithmetic in the given rounding mode, and f16 by exact numbers. Sources
// that use it are compiled with -frounding-math.
#pragma once

#include <cstdint>

namespace ptxrewrite::fuzz {

enum class Rounding : uint8_t { nearest, zero, down, up };
inline constexpr Rounding all_roundings[] = {Rounding::nearest, Rounding::zero, Rounding::down, Rounding::up};
// "rn", "rz", "rm", "rp"; to an integral number "rni" ...
const char* rounding_name(Rounding rounding);

// Sets the host's rounding mode during its lifetime.
class RoundingScope {
public:
  explicit RoundingScope(Rounding rounding);
  ~RoundingScope();
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;
};

float to_float(uint64_t bits);
double to_double(uint64_t bits);
uint64_t bits_of(float value); // every NaN becomes 0x7fffffff
uint64_t bits_of(double value);

float flush(float value); // subnormal to zero, sign kept

// A result is flushed if it is subnormal after rounding with unbounded exponents: a value just below the smallest
// normal number that rounds up to it is not always normal. So the operation is repeated on operands that scale the
// result by 2^64, in the same rounding mode, which decides.
inline constexpr float flush_scale = 0x1p64f;
float flush_by(float result, float scaled_result);
// Multiplies the smaller of two factors by the scale, which is exact when their product is small.
void scale_factors(float& a, float& b);
float flush_if(bool wanted, float value);
float saturate(float value); // to [0, 1], NaN to 0
double saturate(double value);

// The value of an f16; NaN for NaNs. And back: an exact number rounded once, NaN to 0x7fff. `negative_zero` is the sign
// of a zero result that has no sign as an exact number (x + -x).
using ExactNumber = __float128;
double half_value(uint64_t bits);
uint64_t round_to_half(ExactNumber exact, Rounding rounding, bool negative_zero);
uint64_t double_to_half(double value, Rounding rounding);
uint64_t flush_half(uint64_t bits);
// Whether the number is subnormal as an f16, after rounding to nearest with unbounded exponents.
bool is_tiny_half(ExactNumber exact);
bool is_half_nan(uint64_t bits);

// Minimum and maximum of IEEE 754-2008: a NaN is ignored, -0 is less than +0; or, with `nan_wins`, the result is NaN if
// an operand is.
template <class Float> Float minimum(Float a, Float b, bool nan_wins);
template <class Float> Float maximum(Float a, Float b, bool nan_wins);

// Converts to an integer of `bits` bits: rounded, clamped; NaN as in the manual's "Integer Notes" (`wide`: the source
// is f64 or the integer has 64 bits).
uint64_t to_integer(double value, Rounding rounding, unsigned bits, bool is_signed, bool wide);
double round_to_integral(double value, Rounding rounding);

} // namespace ptxrewrite::fuzz
