// R2D2's legal form: PTX for existing GPUs.
#pragma once

#include "ir/core/function.h"
#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms::legal {

// The options of pass `r2d2` that control the legal form.
std::vector<PassOptionDescription> legal_options();

// The function must be in SSA form. Leaves it unchanged if no candidate is better.
Change make_legal_form(ir::Function& function, PassContext& context);

} // namespace ptxrewrite::transforms::legal
