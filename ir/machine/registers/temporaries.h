// Registers that the expansion of one PTX instruction occupies while it runs, beside its operands and results.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// Words of 32 bits. `spare`: registers are free, and ptxas schedules slow paths for speed.
uint32_t temporary_words(const Function& function, InstructionId id, uint32_t compute_capability, bool spare);

} // namespace ptxrewrite::ir
