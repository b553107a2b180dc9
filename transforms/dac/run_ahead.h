// DAC's legal form: loads in loops whose addresses are known ahead are issued some trips before their use.
#pragma once

#include "ir/core/function.h"
#include "transforms/manager/pass.h"

#include <vector>

namespace ptxrewrite::transforms::legal {

// The options of pass `dac` that are about the legal form.
std::vector<PassOptionDescription> run_ahead_options();

// The function must be in SSA form. Leaves it unchanged where nothing is won.
Change run_ahead(ir::Function& function, PassContext& context);

} // namespace ptxrewrite::transforms::legal
