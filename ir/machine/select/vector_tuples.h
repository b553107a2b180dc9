// Moves that bring the elements of vector stores into consecutive registers. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Adds the moves in front of vector stores of 32- and 64-bit elements. The elements of a vector are in a tuple of
// consecutive registers, and a value is in one tuple only: it is moved if it is already in another tuple (also of a
// vector load), at another place, or twice in one vector. Literals are moved into the tuple, except for vectors of
// zeros.
void weigh_vector_tuples(LoweringContext& context);

} // namespace ptxrewrite::ir
