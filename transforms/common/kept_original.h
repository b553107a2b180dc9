// Rewrites that depend on no fact of the launch also apply to the original that a pass keeps beside its variant: it
// runs whenever the variant's conditions do not hold.
#pragma once

#include "transforms/manager/pass.h"

#include <cstddef>
#include <functional>

namespace ptxrewrite::transforms::legal {

// Runs a pass again on the original that it has just kept as context.additions[index]; does nothing if there is none. A
// kernel with a variant gets no launch conditions, so that `again` finds only rewrites that are always right.
void rewrite_kept_original(PassContext& context, size_t index,
                           const std::function<Change(ir::Function&, PassContext&)>& again);

} // namespace ptxrewrite::transforms::legal
