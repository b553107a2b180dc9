// Shared by the references of float instructions: formats by type, elements of packed operands, modifiers.
#pragma once

#include "tests/emulator/reference.h"
#include "tests/unit/emulator/semantics/float_reference.h"

namespace ptxrewrite::test {

// The numbers in a register of a float type; count 0 for other types.
struct Element {
  Format format{};
  unsigned count = 0;
};
inline Element element_of(ir::ScalarType type) {
  switch (type) {
  case ir::ScalarType::f16:
    return {f16_numbers, 1};
  case ir::ScalarType::bf16:
    return {bf16_numbers, 1};
  case ir::ScalarType::f32:
    return {f32_numbers, 1};
  case ir::ScalarType::f64:
    return {f64_numbers, 1};
  case ir::ScalarType::f16x2:
    return {f16_numbers, 2};
  case ir::ScalarType::bf16x2:
    return {bf16_numbers, 2};
  case ir::ScalarType::f32x2:
    return {f32_numbers, 2};
  default:
    return {};
  }
}

inline uint64_t element_bits(Raw value, unsigned index, unsigned bits) {
  return static_cast<uint64_t>(low_bits(value >> (index * bits), bits));
}

// All ones except the sign.
inline uint64_t canonical_nan_code(const Format& format) {
  return (uint64_t{1} << (format.bits() - 1)) - 1;
}

inline double flushed_number(const Format& format, double value) {
  return std::fabs(value) < std::ldexp(1.0, format.min_exponent) ? std::copysign(0.0, value) : value;
}

inline bool has_rounding(const Statement& statement) {
  return statement.has("rn") || statement.has("rz") || statement.has("rm") || statement.has("rp");
}

#ifdef PTXREWRITE_HAVE_MPFR
inline mpfr_rnd_t rounding_of(const Statement& statement) {
  return statement.has("rz")   ? MPFR_RNDZ
         : statement.has("rm") ? MPFR_RNDD
         : statement.has("rp") ? MPFR_RNDU
                               : MPFR_RNDN;
}
#endif

} // namespace ptxrewrite::test
