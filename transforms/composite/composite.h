// Pass `composite`, its hardware form: pairs of dependent integer instructions become one instruction of the paper's
// enhanced multiply-add unit (composite-hpca13 §3).
#pragma once

#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms {

Change run_hardware_composite(ir::Function& function, PassContext& context);

} // namespace ptxrewrite::transforms
