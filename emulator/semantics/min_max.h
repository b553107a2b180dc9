// min and max of floats: any type, .NaN, .ftz, .xorsign.abs, and with three operands .abs.
//
// -0 is less than +0. Halves are compared as bits mapped to the order of signed integers; NaN is mapped to the end of
// that order where it loses every comparison, or, with .NaN, to the end where it wins.
#pragma once

#include "emulator/semantics/float_bits.h"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

struct MinMaxMode {
  bool flush = false;
  bool propagate_nan = false; // .NaN
  bool abs = false;
  bool xorsign = false;
};

namespace detail {

template <class T> constexpr typename FloatTraits<T>::SignedBits ordered(T a) {
  using Signed = typename FloatTraits<T>::SignedBits;
  const auto bits = static_cast<Signed>(to_bits(a));
  return static_cast<Signed>(bits ^ ((bits >> (8 * sizeof(T) - 1)) & std::numeric_limits<Signed>::max()));
}
template <class T> constexpr T from_ordered(typename FloatTraits<T>::SignedBits key) {
  using Signed = typename FloatTraits<T>::SignedBits;
  const auto bits = key ^ ((key >> (8 * sizeof(T) - 1)) & std::numeric_limits<Signed>::max());
  return from_bits<T>(static_cast<BitsOf<T>>(bits));
}

template <bool Max, MinMaxMode Mode, class T> constexpr T min_max_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    T chosen = Max ? (a > b ? a : b) : (a < b ? a : b);                                    // b, if one is NaN
    const T equal = from_bits<T>(Max ? to_bits(a) & to_bits(b) : to_bits(a) | to_bits(b)); // if a == b, also -0 and +0
    chosen = a == b ? equal : chosen;
    chosen = is_nan(Mode.propagate_nan ? a : b) ? a : chosen;
    return canonical(chosen);
  } else {
    using Signed = typename FloatTraits<T>::SignedBits;
    constexpr bool nan_is_high = Max == Mode.propagate_nan;
    constexpr Signed nan_key = nan_is_high ? std::numeric_limits<Signed>::max() : std::numeric_limits<Signed>::min();
    const Signed x = is_nan(a) ? nan_key : ordered(a);
    const Signed y = is_nan(b) ? nan_key : ordered(b);
    const Signed chosen = Max ? (x > y ? x : y) : (x < y ? x : y);
    return canonical(from_ordered<T>(chosen));
  }
}

template <MinMaxMode Mode, class T> constexpr T prepared(T a) {
  if constexpr (Mode.abs)
    return from_bits<T>(magnitude_bits(flushed_if<Mode.flush>(a)));
  else
    return flushed_if<Mode.flush>(a);
}

} // namespace detail

// A single NaN operand is ignored (without .NaN); two NaNs give the canonical NaN. .xorsign: the result has the sign of
// the product, unless it is a NaN.
template <bool Max, MinMaxMode Mode = {}, class T> constexpr T min_max(T a, T b) {
  const T result = detail::min_max_of<Max, Mode>(detail::prepared<Mode>(a), detail::prepared<Mode>(b));
  if constexpr (Mode.xorsign) {
    const T with_signs = with_sign(result, static_cast<BitsOf<T>>(to_bits(a) ^ to_bits(b)));
    return is_nan(result) ? result : with_signs;
  }
  return result;
}
template <bool Max, MinMaxMode Mode = {}, class T> constexpr T min_max(T a, T b, T c) {
  const T first = detail::min_max_of<Max, Mode>(detail::prepared<Mode>(a), detail::prepared<Mode>(b));
  return detail::min_max_of<Max, Mode>(first, detail::prepared<Mode>(c));
}

template <MinMaxMode Mode = {}, class T> constexpr T min_float(T a, T b) {
  return min_max<false, Mode>(a, b);
}
template <MinMaxMode Mode = {}, class T> constexpr T max_float(T a, T b) {
  return min_max<true, Mode>(a, b);
}

} // namespace ptxrewrite::emulator::semantics
