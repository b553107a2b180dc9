// Division by a number that is the same for all threads of a launch, as a multiplication by numbers that the launcher
// computes from the divisor. The quotient is the high end of dividend * multiplier (+ addend), shifted right.
//
// With L = ceil(log2 d), the smallest L with d <= 2^L:
//
//   natural32   n < 2^31:  m = ceil(2^(31+L) / d) < 2^32.  m*d = 2^(31+L) + e with 0 <= e < d <= 2^L, so n*m/2^(31+L)
//               is n/d plus n*e/(d*2^(31+L)) < 1/d: no further integer is reached. The product has 64 bits, and a shift
//               by 31+L, which may be 31, so that d = 1 is included.
//   unsigned32  any n, with l = floor(log2 d) and 2^(32+l) = q*d + r: if d - r < 2^l, rounding up is exact, as above,
//               with m = q + 1; otherwise rounding down is, with (n + 1) * m and m = q (Robison, ARITH 2005), or
//               m = 2^32 - 1 if d is a power of two. n*m + m < 2^64.
//   signed32    any n, d > 0: the quotient of Granlund and Montgomery (PLDI 1994, figure 5.2), L >= 1:
//               m = floor(2^(31+L) / d) + 1 - 2^32, (mulhi(n, m) + n >> L-1) - (n < 0).
//   natural64   n < 2^63, d >= 2: as natural32 with 63 for 31; the high half is shifted by L-1.
//   unsigned64  any n, d >= 2: Granlund and Montgomery, figure 4.1: m = floor(2^64 * (2^L - d) / d) + 1,
//               h = mulhi(n, m), (((n - h) >> 1) + h) >> L-1.
//   signed64    as signed32.
//
// Launch expressions have 128 bits, and no value if they overflow, so 64-bit divisors must be below 2^63.
#pragma once

#include "ir/isa/types.h"

#include <cstdint>
#include <string>

namespace ptxrewrite::transforms {

enum class MagicForm : uint8_t { natural32, unsigned32, signed32, natural64, unsigned64, signed64 };

struct Magic {
  ir::ScalarType multiplier_type = ir::ScalarType::none;
  std::string multiplier; // launch expressions
  std::string shift;      // of type u32
  std::string addend;     // unsigned32 only, of type u64
};

// `divisor`: a launch expression of its value, in parentheses unless it is a single word or call.
Magic magic_of(MagicForm form, const std::string& divisor);

// The smallest and largest divisors for which a form is valid.
constexpr uint64_t least_divisor(MagicForm form) {
  return form == MagicForm::natural64 || form == MagicForm::unsigned64 ? 2 : 1;
}
constexpr uint64_t largest_divisor(MagicForm form) {
  switch (form) {
  case MagicForm::natural32:
  case MagicForm::unsigned32:
    return UINT32_MAX;
  case MagicForm::signed32:
    return INT32_MAX;
  case MagicForm::natural64:
  case MagicForm::unsigned64:
  case MagicForm::signed64:
    break;
  }
  return INT64_MAX;
}

} // namespace ptxrewrite::transforms
