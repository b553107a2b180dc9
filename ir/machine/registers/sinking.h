// Moves computations down to the blocks that read their results, as assemblers do before they allocate registers: front
// ends that compute all offsets first keep them alive across everything else. SSA form.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// An instruction moves into a block that dominates all of its readers, if that is in no deeper loop and does not only
// jump, and if no more operands than results have to stay alive for it; loads of parameters and constants do, too. `with_predicates`: also
// instructions whose result is a predicate. Returns false if nothing moves.
bool sink_computations(Function& function, bool with_predicates);

} // namespace ptxrewrite::ir
