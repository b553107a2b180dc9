// What of an expansion the special-function unit does.
#pragma once

#include "ir/isa/isa.h"
#include "ir/machine/figures/pipe.h"

#include <cstdint>

namespace ptxrewrite::ir {

// Of the machine instructions that an instruction becomes (weights.def), how many every execution runs on the unit of
// reciprocals, conversions and bit searches: MUFU, I2F, F2I, F2F, FLO, POPC, BREV. The rest of an expansion is
// arithmetic of its type. As ptxas of CUDA 13.0 makes them for sm_75 (tests/unit/ir/machine/special_work_test.cpp);
// slow paths, which few executions take, are left out. `cost`: all of them; division by a literal has no reciprocal.
uint16_t special_instructions(const Form& form, const InstructionCost& cost);

} // namespace ptxrewrite::ir
