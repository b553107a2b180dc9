// Branches whose way is known from numbers in the text (WARP_SZ, for one): assemblers drop what no run reaches. Only
// for functions in SSA form. Private to ir/machine.
#pragma once

#include "ir/machine/lowering_rules.h"

namespace ptxrewrite::ir {

struct KnownBranches {
  std::vector<bool> reached; // by BlockId
  std::vector<bool> decided; // by BlockId: all runs that come to its end leave it the same way
};
KnownBranches known_branches(const LoweringContext& context);

} // namespace ptxrewrite::ir
