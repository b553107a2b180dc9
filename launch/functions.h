// The functions of launch file expressions, including the generators of buffer contents. Generators depend only on
// their arguments, the seed and the element's index, so that elements can be computed in any order and are the same on
// every machine.
#pragma once

#include "launch/expression.h"

namespace ptxrewrite::launch {

const Dialect& launch_dialect();

// The `index`-th 64 random bits of stream `seed`: splitmix64 on the mixed seed.
uint64_t random_bits(uint64_t seed, uint64_t index);

// The image of `index` under the permutation `seed` of 0 .. count-1; index < count.
uint64_t permuted(uint64_t seed, uint64_t index, uint64_t count);

} // namespace ptxrewrite::launch
