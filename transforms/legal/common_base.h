// Legal form, candidate 1 of R2D2: accesses whose addresses differ by a compile-time constant share one register.
#pragma once

#include "ir/function.h"
#include "transforms/pass.h"

namespace ptxrewrite::transforms::legal {

// The function must be in SSA form. Leaves it unchanged where nothing is won.
Change share_common_bases(ir::Function& function, PassContext& context);

} // namespace ptxrewrite::transforms::legal
