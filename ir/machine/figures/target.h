// The GPU architecture that a module is compiled for.
#pragma once

#include "ir/core/module.h"

#include <cstdint>

namespace ptxrewrite::ir {

// 90 for .target sm_90; `otherwise` if the module names no architecture.
uint32_t target_capability(const Module& module, uint32_t otherwise = 80);

} // namespace ptxrewrite::ir
