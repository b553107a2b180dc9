// Division of f32 by some literals as a product and one correction:
//
//   q = x * (1/c)   r = q * c - x   y = q - r * (1/c)        each rounded once, to nearest
//
// q is at most an ulp off, r is exact unless q is subnormal, and y is the quotient rounded to nearest for the literals
// that is_exact_divisor() knows: tests/rules/exact_divisors.cpp compares all floats for each of them (`ninja
// exact_divisors`). Even numbers are not among them: where q is subnormal, their r may be rounded.
// Zeros keep their signs, as r is +0 then and subtracted; of infinities r is NaN, which max(r, -largest) replaces by a
// number that changes nothing; NaN stays NaN, of which the machine knows one.
#pragma once

#include "transforms/common/family.h"

#include <cstdint>

namespace ptxrewrite::transforms {

// `bits`: of an f32.
bool is_exact_divisor(uint32_t bits);

// div.rn.f32 by such literals. True if anything changed.
bool divide_floats(legal::Attempt& attempt, legal::SiteFilter& sites);

} // namespace ptxrewrite::transforms
