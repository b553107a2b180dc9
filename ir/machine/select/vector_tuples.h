// Moves that bring the elements of vector stores into consecutive registers. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Adds the moves of vector stores of 32- and 64-bit elements. A register is in one tuple of consecutive registers: an
// element that already is in another one, or at another place of it, is moved, as are elements that occur twice. Vector
// loads define tuples, too. Literals are moved in, all but vectors of zeros.
void weigh_vector_tuples(LoweringContext& context);

} // namespace ptxrewrite::ir
