// Generates a launch file from the signatures of a module's kernels, as a starting point that can be run as it is.
#pragma once

#include "ir/core/module.h"

#include <span>
#include <string>
#include <string_view>

namespace ptxrewrite::launch {

// Kernels are in the given order; `ptx` is the name of the PTX file in the launch file. Which parameters are buffers,
// of which type, and which are written, is inferred from the code if possible: from loads and stores whose address is
// computed from the parameter by additions.
std::string launch_template(const ir::Module& module, std::span<const ir::Function* const> kernels,
                            std::string_view ptx);

} // namespace ptxrewrite::launch
