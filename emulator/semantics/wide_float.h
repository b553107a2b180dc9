// f64 multiplication, fma, division and square root in directed rounding, on integers: exact significands of up to 128
// bits, rounded once. NaN operands give an unspecified NaN; the caller chooses the right one.
#pragma once

#include "emulator/semantics/float_bits.h"
#include "emulator/semantics/integer.h"
#include "emulator/semantics/rounding.h"

#include <bit>
#include <cstdint>

namespace ptxrewrite::emulator::semantics {

// (-1)^negative * significand * 2^exponent, plus less than one unit of the significand if `sticky`.
struct WideFloat {
  bool negative = false;
  bool sticky = false;
  int exponent = 0;
  Uint128 significand = 0;
};

namespace detail {

constexpr int bit_width(Uint128 a) {
  const auto high = static_cast<uint64_t>(a >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<uint64_t>(a));
}

// Unpacks a finite number.
constexpr WideFloat unpack(double a) {
  const uint64_t magnitude = magnitude_bits(a);
  const int exponent_field = static_cast<int>(magnitude >> 52);
  const uint64_t fraction = magnitude & 0xfffffffffffff;
  const uint64_t hidden = exponent_field == 0 ? 0 : uint64_t{1} << 52;
  return {is_negative(a), false, (exponent_field == 0 ? 1 : exponent_field) - 1075, fraction | hidden};
}

// Shifts right by `count` bits; the dropped bits are collected in the sticky bit.
constexpr void shift_right(WideFloat& a, int count) {
  if (count <= 0) return;
  if (count > 127) {
    a.sticky |= a.significand != 0;
    a.significand = 0;
  } else {
    a.sticky |= (a.significand & ((Uint128{1} << count) - 1)) != 0;
    a.significand >>= count;
  }
  a.exponent += count;
}

template <Rounding Mode> constexpr bool rounds_away(bool negative) {
  return Mode == Rounding::up ? !negative : Mode == Rounding::down && negative;
}

// Rounds `a`, which is not zero, to f64: its 53 leading bits, or fewer below 2^-1022.
template <Rounding Mode> constexpr double pack(WideFloat a) {
  static_assert(Mode != Rounding::nearest_even);
  constexpr int least_exponent = -1074;
  const int width = bit_width(a.significand);
  const int wanted = a.exponent + width - 53; // the exponent of the last bit kept
  const int last = wanted < least_exponent ? least_exponent : wanted;
  if (last >= a.exponent) {
    shift_right(a, last - a.exponent);
  } else {
    a.significand <<= a.exponent - last;
    a.exponent = last;
  }
  auto kept = static_cast<uint64_t>(a.significand);
  if (a.sticky && rounds_away<Mode>(a.negative)) ++kept; // at most 2^53
  const uint64_t sign = a.negative ? FloatTraits<double>::sign : 0;
  if (kept >> 53 != 0) {
    kept >>= 1;
    ++a.exponent;
  }
  const int exponent_field = kept >> 52 != 0 ? a.exponent + 1075 : 0;
  if (exponent_field >= 0x7ff)
    return from_bits<double>(sign | (FloatTraits<double>::infinity - (rounds_away<Mode>(a.negative) ? 0 : 1)));
  return from_bits<double>(sign | (static_cast<uint64_t>(exponent_field) << 52) | (kept & 0xfffffffffffff));
}

constexpr bool both_finite(double a, double b) {
  return magnitude_bits(a) < FloatTraits<double>::infinity && magnitude_bits(b) < FloatTraits<double>::infinity;
}

// Adds `small` to `large`, whose leading bit is at least as high; lost bits are kept as sticky.
constexpr WideFloat add_in_order(WideFloat large, WideFloat small) {
  // A product has at most 106 bits: 20 more hold an exact sum, or put `small` below all significant bits.
  const int shift = 126 - bit_width(large.significand);
  large.significand <<= shift;
  large.exponent -= shift;
  const int distance = large.exponent - small.exponent;
  if (distance < 0) {
    small.significand <<= -distance;
    small.exponent += distance;
  } else {
    shift_right(small, distance);
  }
  if (large.negative == small.negative) {
    large.significand += small.significand;
    large.sticky = small.sticky;
  } else {
    // The bits that `small` lost reduce the difference: it is one unit less, and the rest of that unit is sticky.
    large.significand -= small.significand + (small.sticky ? 1 : 0);
    large.sticky = small.sticky;
  }
  return large;
}

} // namespace detail

template <Rounding Mode> constexpr double wide_fma(double a, double b, double c) {
  if (!detail::both_finite(a, b)) return a * b + c;
  if (!detail::both_finite(c, c)) return quieted(c);
  WideFloat product = detail::unpack(a);
  const WideFloat factor = detail::unpack(b);
  product.negative ^= factor.negative;
  product.exponent += factor.exponent;
  product.significand *= factor.significand;
  const WideFloat addend = detail::unpack(c);
  if (product.significand == 0) { // the sum is c, except for the sign of zero
    const double zero = product.negative ? -0.0 : 0.0;
    return with_zero_sign<Mode>(zero + c, zero, c);
  }
  if (addend.significand == 0) return detail::pack<Mode>(product);
  const bool in_order = product.exponent + detail::bit_width(product.significand) >=
                        addend.exponent + detail::bit_width(addend.significand);
  const WideFloat sum = in_order ? detail::add_in_order(product, addend) : detail::add_in_order(addend, product);
  if (sum.significand == 0 && !sum.sticky) return Mode == Rounding::down ? -0.0 : 0.0;
  WideFloat result = sum;
  // Of two operands with the same leading bit the smaller one may have been taken as `large`.
  if (static_cast<Int128>(sum.significand) < 0) {
    result.significand = -sum.significand;
    result.negative = !sum.negative;
  }
  return detail::pack<Mode>(result);
}

template <Rounding Mode> constexpr double wide_mul(double a, double b) {
  if (!detail::both_finite(a, b)) return a * b;
  WideFloat product = detail::unpack(a);
  const WideFloat factor = detail::unpack(b);
  product.negative ^= factor.negative;
  product.exponent += factor.exponent;
  product.significand *= factor.significand;
  if (product.significand == 0) return product.negative ? -0.0 : 0.0;
  return detail::pack<Mode>(product);
}

template <Rounding Mode> constexpr double wide_div(double a, double b) {
  WideFloat quotient = detail::unpack(a);
  WideFloat divisor = detail::unpack(b);
  if (!detail::both_finite(a, b) || quotient.significand == 0 || divisor.significand == 0) return a / b;
  const int widening = 126 - detail::bit_width(quotient.significand);
  const Uint128 dividend = quotient.significand << widening;
  quotient.significand = dividend / divisor.significand; // at least 73 bits
  quotient.sticky = dividend % divisor.significand != 0;
  quotient.exponent -= widening + divisor.exponent;
  quotient.negative ^= divisor.negative;
  return detail::pack<Mode>(quotient);
}

template <Rounding Mode> inline double wide_sqrt(double a) {
  const double nearest = __builtin_sqrt(a);
  if (is_nan(nearest) || a == 0 || is_infinite(a)) return nearest;
  // The root has 53 bits and its square 106, both exact here. The root's exponent is about half of the radicand's, so
  // the radicand is shifted to the exponent of the square.
  const WideFloat root = detail::unpack(nearest);
  const WideFloat square = {false, false, 2 * root.exponent, root.significand * root.significand};
  WideFloat radicand = detail::unpack(a);
  radicand.significand <<= radicand.exponent - square.exponent;
  const auto error = static_cast<Int128>(radicand.significand - square.significand);
  return directed<Mode>(nearest, error > 0 ? 1.0 : error < 0 ? -1.0 : 0.0);
}

} // namespace ptxrewrite::emulator::semantics
