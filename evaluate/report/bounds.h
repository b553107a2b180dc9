// What bounds a kernel, in words.
#pragma once

#include "emulator/timing/machine_code.h"

#include <string_view>

namespace ptxrewrite::evaluate {

// What it means when most clocks go there, and what helps: a sentence or two.
std::string_view advice(timing::Cause cause);

} // namespace ptxrewrite::evaluate
