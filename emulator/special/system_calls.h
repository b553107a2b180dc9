// Functions that the driver provides to kernels: vprintf, malloc, free, __assertfail.
#pragma once

#include "emulator/core/micro_op.h"

#include <string_view>

namespace ptxrewrite::emulator {

// Returns nullptr if `name` is none of them. MicroOp::extra is the number of the CallSite.
Handler system_call(std::string_view name);

} // namespace ptxrewrite::emulator
