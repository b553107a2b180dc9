// The amount of work of a tensor-core instruction.
#pragma once

#include "ir/isa/isa.h"

namespace ptxrewrite::ir {

// Multiplications per warp, in units of 16-bit multiplications that take the same time: 8-bit numbers count half, tf32
// twice and double precision sixteen times (vendor's data sheets of compute capability 8.0 and 9.0). Sparse products
// count only the multiplications that are performed. 0 for instructions that span several warps (wgmma, tcgen05) and
// for those that are not products.
double matrix_products(const Form& form);

} // namespace ptxrewrite::ir
