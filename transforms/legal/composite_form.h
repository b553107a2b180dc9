// Pass `composite`, its legal form: pairs, triples and trees of integer instructions become what current PTX has for
// them.
#pragma once

#include "transforms/pass.h"

namespace ptxrewrite::transforms {

Change run_legal_composite(ir::Function& function, PassContext& context);

} // namespace ptxrewrite::transforms
