// DAC's legal form: loads in loops whose addresses are known in advance are issued some trips before their use.
#pragma once

#include "ir/core/function.h"
#include "transforms/manager/pass.h"

#include <vector>

namespace ptxrewrite::transforms::legal {

// The options of pass `dac` that control the legal form.
std::vector<PassOptionDescription> run_ahead_options();

// The function must be in SSA form. Leaves it unchanged if nothing is gained.
Change run_ahead(ir::Function& function, PassContext& context);

} // namespace ptxrewrite::transforms::legal
