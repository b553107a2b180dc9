// The functions that expressions of launch files know, the generators of buffer contents among them. Generators depend
// only on their arguments, the seed and the element's index, so that elements can be computed in any order and are the
// same on every machine.
#pragma once

#include "launch/expression.h"

namespace ptxrewrite::launch {

const Dialect& launch_dialect();

// The 64 random bits number `index` of stream `seed`: splitmix64 with the seed mixed first.
uint64_t random_bits(uint64_t seed, uint64_t index);

// Where `index` goes in the permutation `seed` of 0 .. count-1; index < count.
uint64_t permuted(uint64_t seed, uint64_t index, uint64_t count);

} // namespace ptxrewrite::launch
