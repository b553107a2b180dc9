// Comparison of floats: the predicates of setp and set. A comparison with NaN is false, `ne` included; the forms that
// end in u are true for NaN. Zeros are equal. .ftz flushes the operands. The use of the result (and, or, xor, the
// complement for q) is in compare.h.
#pragma once

#include "emulator/semantics/float_bits.h"
#include "emulator/semantics/half.h"

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

enum class FloatComparison : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <FloatComparison Comparison, class T> constexpr bool compare_ieee(T a, T b) {
  const bool unordered = is_nan(a) | is_nan(b);
  switch (Comparison) {
  case FloatComparison::eq:
    return a == b;
  case FloatComparison::ne:
    return (a < b) | (a > b);
  case FloatComparison::lt:
    return a < b;
  case FloatComparison::le:
    return a <= b;
  case FloatComparison::gt:
    return a > b;
  case FloatComparison::ge:
    return a >= b;
  case FloatComparison::equ:
    return (a == b) | unordered;
  case FloatComparison::neu:
    return a != b;
  case FloatComparison::ltu:
    return !(a >= b);
  case FloatComparison::leu:
    return !(a > b);
  case FloatComparison::gtu:
    return !(a <= b);
  case FloatComparison::geu:
    return !(a < b);
  case FloatComparison::num:
    return !unordered;
  case FloatComparison::nan:
    return unordered;
  }
  return false;
}

template <FloatComparison Comparison, bool Flush = false> constexpr bool compare_float(float a, float b) {
  return compare_ieee<Comparison>(flushed_if<Flush>(a), flushed_if<Flush>(b));
}
template <FloatComparison Comparison> constexpr bool compare_float(double a, double b) {
  return compare_ieee<Comparison>(a, b);
}
template <FloatComparison Comparison, bool Flush = false> constexpr bool compare_float(Float16 a, Float16 b) {
  return compare_ieee<Comparison>(to_float(flushed_if<Flush>(a)), to_float(flushed_if<Flush>(b)));
}
template <FloatComparison Comparison> constexpr bool compare_float(BFloat16 a, BFloat16 b) {
  return compare_ieee<Comparison>(to_float(a), to_float(b));
}

// The value that set writes for true: all ones in integers, 1.0 in floats.
template <class T> constexpr T set_true_value() {
  if constexpr (requires { FloatTraits<T>::one; })
    return from_bits<T>(FloatTraits<T>::one);
  else
    return static_cast<T>(~T{0});
}
template <class T> constexpr T set_value(bool condition) {
  return condition ? set_true_value<T>() : T{};
}

} // namespace ptxrewrite::emulator::semantics
