// Describes the bottleneck of a kernel in words.
#pragma once

#include "emulator/timing/machine_code.h"

#include <string_view>

namespace ptxrewrite::evaluate {

// The meaning of a cause that takes most clocks, and possible remedies, in a sentence or two.
std::string_view advice(timing::Cause cause);

} // namespace ptxrewrite::evaluate
