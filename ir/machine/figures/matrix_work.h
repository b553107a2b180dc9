// How much work a tensor-core instruction is.
#pragma once

#include "ir/isa/isa.h"

namespace ptxrewrite::ir {

// Multiplications that one warp has done, as so many of 16-bit numbers as take the same time: numbers of 8 bits take
// half of it, tf32 twice as much, half precision's sixteenfold is double precision (vendor's data sheets of compute
// capability 8.0 and 9.0). Of sparse matrices those that are not left out. 0 for what a warp does not do alone
// (wgmma, tcgen05) and what is no product.
double matrix_products(const Form& form);

} // namespace ptxrewrite::ir
