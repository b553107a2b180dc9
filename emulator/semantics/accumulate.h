// Float sums defined outside of the arithmetic instructions: the additions of atom and red, and the dot products of
// matrix instructions.
#pragma once

#include "emulator/semantics/float.h"
#include "emulator/semantics/half.h"
#include "emulator/semantics/min_max.h"

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::emulator::semantics {

// atom.add and red.add round to nearest even. f32 additions in global memory flush subnormal operands and results,
// those in shared memory do not; additions of halves (.noftz) and f64 never flush.
constexpr float atomic_add_global(float old, float value) {
  return add_f32<FloatMode<Rounding::nearest_even, true>>(old, value);
}
constexpr float atomic_add_shared(float old, float value) {
  return add_f32<>(old, value);
}
constexpr double atomic_add(double old, double value) {
  return add_f64<>(old, value);
}
template <class Half> constexpr Half atomic_add(Half old, Half value) {
  return add_half<Half>(old, value);
}
template <class Half> constexpr Pair<Half> atomic_add(Pair<Half> old, Pair<Half> value) {
  return on_pair<&add_half<Half>>(old, value);
}
template <bool Max, class Half> constexpr Half atomic_min_max(Half old, Half value) {
  return min_max<Max>(old, value);
}

// A tf32 operand is the upper 19 bits of a register; the lower 13 bits are ignored.
constexpr float tf32_operand(uint32_t bits) {
  return from_bits<float>(bits & 0xffffe000);
}

// sum + a[0] * b[0] + a[1] * b[1] + ..., added in this order; the manual leaves the order open. Every product is exact,
// every partial sum is rounded once, to nearest even, to the type of the sum.
template <class Element> constexpr float dot(const Element* a, const Element* b, std::size_t count, float sum) {
  for (std::size_t k = 0; k < count; ++k)
    sum = fma_f32<>(to_float(a[k]), to_float(b[k]), sum);
  return sum;
}
constexpr float dot_tf32(const uint32_t* a, const uint32_t* b, std::size_t count, float sum) {
  for (std::size_t k = 0; k < count; ++k)
    sum = fma_f32<>(tf32_operand(a[k]), tf32_operand(b[k]), sum);
  return sum;
}
inline double dot(const double* a, const double* b, std::size_t count, double sum) {
  for (std::size_t k = 0; k < count; ++k)
    sum = fma_f64<>(a[k], b[k], sum);
  return sum;
}
// With f16 accumulators the sum is kept in f32 and rounded to f16 at the end.
constexpr Float16 dot(const Float16* a, const Float16* b, std::size_t count, Float16 sum) {
  return to_half<Float16>(dot(a, b, count, to_float(sum)));
}

} // namespace ptxrewrite::emulator::semantics
