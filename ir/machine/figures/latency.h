// Latency of a result, and issue rate per SM, of an instruction on a machine.
#pragma once

#include "ir/isa/isa.h"
#include "ir/machine/figures/machine.h"

namespace ptxrewrite::ir {

// Of a load of shared memory: the block's own, or another block's of its cluster.
Figure shared_latency(const Machine& machine, StateSpace space);

// Clocks from issue until an instruction that reads the result may issue, for the last machine instruction of an
// expansion. Loads are assumed to hit in the first-level cache, or to go to memory on machines without one. Unknown for
// instructions without a result, such as stores, barriers and branches.
Figure latency(const Machine& machine, const Form& form);

// Results (lanes) per clock and SM of the unit that executes the instruction. Unknown if the machine has no such unit
// or the instruction needs none.
Figure throughput(const Machine& machine, const Form& form);

} // namespace ptxrewrite::ir
