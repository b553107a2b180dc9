// Division of f32 by certain literals as a product and one correction:
//
//   q = x * (1/c)   r = q * c - x   y = q - r * (1/c)        each rounded once, to nearest
//
// q is at most an ulp off, r is exact unless q is subnormal, and y is the quotient rounded to nearest for the literals
// that is_exact_divisor() knows: tests/rules/exact_divisors.cpp compares all floats for each of them (`ninja
// exact_divisors`). Even numbers are excluded: if q is subnormal, their r may be rounded. Zeros keep their signs,
// because r is then +0 and subtracted; for infinities r is NaN, which max(r, -largest) replaces by a number that does
// not change the result; NaN stays NaN, in the machine's only encoding.
#pragma once

#include "transforms/common/family.h"

#include <cstdint>

namespace ptxrewrite::transforms {

// `bits`: of an f32 number.
bool is_exact_divisor(uint32_t bits);

// Rewrites div.rn.f32 by such literals. Returns whether anything changed.
bool divide_floats(legal::Attempt& attempt, legal::SiteFilter& sites);

} // namespace ptxrewrite::transforms
