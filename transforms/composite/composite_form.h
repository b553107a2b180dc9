// Pass `composite`, its legal form: pairs, triples and trees of integer instructions become single instructions of
// current PTX.
#pragma once

#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms {

Change run_legal_composite(ir::Function& function, PassContext& context);

// The options of pass `composite` that control the legal form.
std::vector<PassOptionDescription> legal_composite_options();

} // namespace ptxrewrite::transforms
