// Latency of a result, and issue rate per SM, of an instruction on a machine.
#pragma once

#include "ir/isa/isa.h"
#include "ir/machine/figures/machine.h"

namespace ptxrewrite::ir {

// Clocks from issue until an instruction that reads the result may issue, for the last machine instruction of an
// expansion. Loads hit in the first-level cache; where a machine has none, they go to memory. Unknown for what gives no
// result, such as stores, barriers and branches.
Figure latency(const Machine& machine, const Form& form);

// Results (lanes) per clock and SM of the unit that does the work. Unknown where the machine has no such unit or the
// instruction needs none.
Figure throughput(const Machine& machine, const Form& form);

} // namespace ptxrewrite::ir
