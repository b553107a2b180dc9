// Vector accesses of a rewritten kernel as the accesses of the original that they stand for: what `.v4` does is what
// four accesses of a quarter do one behind the other, so that each is compared with its own.
#pragma once

#include "evaluate/prove/symbolic.h"
#include "transforms/manager/pass.h"

#include <string>
#include <vector>

namespace ptxrewrite::prove {

// Takes joined accesses of the rewritten kernel apart. A vector whose parts have no originals stays as it is. Both
// kernels are in SSA form, with the values of the original.
void take_joined_accesses_apart(const ir::Function& original, ir::Function& rewritten);

// Is the second form that of the first, read through the path for data that do not change?
bool is_read_only_form_of(const ir::Form& original, const ir::Form& rewritten);

// Does the ledger hold what the launch says of ranges that are read and written?
bool keeps_ranges_apart(const std::vector<transforms::Obligation>& ledger);

// May `later`, which the original executes after `earlier`, come first in one thread? Weak accesses of global memory,
// both loads, or apart by a literal, or one read-only.
bool may_change_places(Terms& terms, const ir::Function& function, const Observation& earlier, const Observation& later,
                       bool either_is_read_only);

} // namespace ptxrewrite::prove
