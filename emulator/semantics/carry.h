// Extended-precision integer arithmetic of one lane: add.cc, addc, sub.cc, subc, mad.cc and madc.
//
// The carry flag CC.CF holds the carry out of an addition also after a subtraction: sub.cc computes a + ~b + 1, so the
// flag is the *inverted* borrow, and subc computes a + ~b + CC.CF. The manual describes a borrow; chains of one kind
// give the same results either way, mixed chains follow ptxas here.
#pragma once

#include "emulator/semantics/integer.h"

namespace ptxrewrite::emulator::semantics {

template <class T> struct WithCarry {
  T value;
  bool carry;
};

// a + b + carry, and whether the sum overflows as an unsigned number.
template <class T> constexpr WithCarry<T> addc_cc(T a, T b, bool carry) {
  using U = std::make_unsigned_t<T>;
  const U partial = static_cast<U>(add(a, b));
  const U sum = static_cast<U>(partial + U{carry});
  return {static_cast<T>(sum), partial < static_cast<U>(a) || sum < partial};
}
template <class T> constexpr WithCarry<T> add_cc(T a, T b) {
  return addc_cc(a, b, false);
}
template <class T> constexpr T addc(T a, T b, bool carry) {
  return addc_cc(a, b, carry).value;
}
template <class T> constexpr WithCarry<T> subc_cc(T a, T b, bool carry) {
  return addc_cc(a, static_cast<T>(~b), carry);
}
template <class T> constexpr WithCarry<T> sub_cc(T a, T b) {
  return subc_cc(a, b, true);
}
template <class T> constexpr T subc(T a, T b, bool carry) {
  return subc_cc(a, b, carry).value;
}
constexpr int32_t addc_sat(int32_t a, int32_t b, bool carry) {
  return saturate<int32_t>(int64_t{a} + b + carry);
}
constexpr int32_t subc_sat(int32_t a, int32_t b, bool carry) {
  return saturate<int32_t>(int64_t{a} - b - !carry);
}

// The carry is that of the addition of c alone; the other half of the product has no influence on it.
template <class T> constexpr WithCarry<T> madc_lo_cc(T a, T b, T c, bool carry) {
  return addc_cc(mul_lo(a, b), c, carry);
}
template <class T> constexpr WithCarry<T> madc_hi_cc(T a, T b, T c, bool carry) {
  return addc_cc(mul_hi(a, b), c, carry);
}
template <class T> constexpr WithCarry<T> mad_lo_cc(T a, T b, T c) {
  return madc_lo_cc(a, b, c, false);
}
template <class T> constexpr WithCarry<T> mad_hi_cc(T a, T b, T c) {
  return madc_hi_cc(a, b, c, false);
}
template <class T> constexpr T madc_lo(T a, T b, T c, bool carry) {
  return madc_lo_cc(a, b, c, carry).value;
}
template <class T> constexpr T madc_hi(T a, T b, T c, bool carry) {
  return madc_hi_cc(a, b, c, carry).value;
}
constexpr int32_t madc_hi_sat(int32_t a, int32_t b, int32_t c, bool carry) {
  return addc_sat(mul_hi(a, b), c, carry);
}

} // namespace ptxrewrite::emulator::semantics
