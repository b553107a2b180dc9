// The amount of work of a tensor-core instruction.
#pragma once

#include "ir/isa/isa.h"

namespace ptxrewrite::ir {

// Multiplications per warp, in units of 16-bit multiplications that take the same time: 8-bit numbers count half, tf32
// twice and double precision sixteen times (vendor's data sheets of compute capability 8.0, 9.0 and 10.0). Sparse
// products count only the multiplications that are performed; of wgmma those of one of its four warps. 0 for
// instructions that are not products, and for tcgen05.mma, whose size only its execution tells (Recording::products).
double matrix_products(const Form& form);

// The time of one multiplication of tcgen05.mma in the same units, by its .kind.
double tensor_memory_product_time(const Form& form);

// wgmma and tcgen05.mma: their results come later, and ThroughputFacts::matrix_async is their rate.
bool is_async_product(const Form& form);

} // namespace ptxrewrite::ir
