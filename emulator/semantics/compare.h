// Integer comparison and selection of one lane: setp, set, selp, slct.
//
// lo, ls, hi, hs are lt, le, gt, ge of unsigned types and have no functions of their own.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

enum class IntegerComparison : uint8_t { eq, ne, lt, le, gt, ge };
enum class BooleanOperation : uint8_t { none, and_, or_, xor_ }; // combines a comparison with a predicate

template <IntegerComparison Comparison, class T> constexpr bool compare(T a, T b) {
  switch (Comparison) {
  case IntegerComparison::eq:
    return a == b;
  case IntegerComparison::ne:
    return a != b;
  case IntegerComparison::lt:
    return a < b;
  case IntegerComparison::le:
    return a <= b;
  case IntegerComparison::gt:
    return a > b;
  case IntegerComparison::ge:
    return a >= b;
  }
  return false;
}

// For predicates (bool) and for masks of a whole warp, one bit per lane (uint32_t). `none` returns the comparison.
template <class Predicate>
constexpr Predicate combine(BooleanOperation operation, Predicate comparison, Predicate other) {
  switch (operation) {
  case BooleanOperation::none:
    return comparison;
  case BooleanOperation::and_:
    return static_cast<Predicate>(comparison & other);
  case BooleanOperation::or_:
    return static_cast<Predicate>(comparison | other);
  case BooleanOperation::xor_:
    return static_cast<Predicate>(comparison ^ other);
  }
  return comparison;
}

// The results of setp p|q: q is computed from the complement of the comparison, not from p.
template <class Predicate> struct PredicatePair {
  Predicate p;
  Predicate q;
};
constexpr PredicatePair<bool> setp(BooleanOperation operation, bool comparison, bool other) {
  return {combine(operation, comparison, other), combine(operation, !comparison, other)};
}
constexpr PredicatePair<uint32_t> setp(BooleanOperation operation, uint32_t comparison, uint32_t other) {
  return {combine(operation, comparison, other), combine(operation, ~comparison, other)};
}

// set: the destination's "true" is all ones for integers and 1.0 for floats (given as bits).
template <class U> constexpr U set_integer(bool condition) {
  return condition ? static_cast<U>(~U{0}) : U{0};
}
constexpr uint32_t set_f32(bool condition) {
  return condition ? 0x3f800000u : 0u;
}

template <class T> constexpr T selp(T a, T b, bool condition) {
  return condition ? a : b;
}
template <class T> constexpr T slct(T a, T b, int32_t selector) {
  return selector >= 0 ? a : b;
}
// -0 and, with flush, negative subnormal numbers compare as zero; NaN selects b.
template <class T> constexpr T slct_f32(T a, T b, float selector, bool flush) {
  return selector >= (flush ? -0x1.fffffcp-127f : 0.0f) ? a : b;
}

} // namespace ptxrewrite::emulator::semantics
