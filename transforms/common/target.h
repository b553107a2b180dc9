// The machine that a module is compiled for, for passes that weigh machine instructions.
#pragma once

#include "ir/core/module.h"

#include <cstdint>

namespace ptxrewrite::transforms {

// 90 for .target sm_90; 80 where the module names no architecture.
uint32_t target_capability(const ir::Module& module);

} // namespace ptxrewrite::transforms
