// A skeleton launch file from the signatures of a module's kernels, which the reader of launch files accepts as it is.
#pragma once

#include "ir/core/module.h"

#include <span>
#include <string>
#include <string_view>

namespace ptxrewrite::launch {

// Kernels in the order given; `ptx` is how the launch file names the PTX file. Which parameters are buffers, of which
// type, and which are written, is read off the code where it shows: an address made of the parameter by additions, used
// by a load or a store.
std::string launch_template(const ir::Module& module, std::span<const ir::Function* const> kernels,
                            std::string_view ptx);

} // namespace ptxrewrite::launch
