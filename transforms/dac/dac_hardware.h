// DAC's hardware form: the two streams, the terms of the variant, and the remarks.
#pragma once

#include "ir/core/function.h"
#include "transforms/manager/pass.h"

#include <vector>

namespace ptxrewrite::transforms::dac {

// The options of pass `dac` that control the hardware form.
std::vector<PassOptionDescription> hardware_options();

Change split_streams(ir::Function& function, PassContext& context);

} // namespace ptxrewrite::transforms::dac
