// A slice of a machine: one SM in so many, with its share of L2, of bandwidth and of the distribution of blocks. Each
// part of a large grid runs on a slice as the whole grid does on the machine; so small grids show what they would do if
// they were as many times larger. What SMs share in L2 beyond the slice is lost.
#pragma once

#include "ir/machine/figures/machine.h"

namespace ptxrewrite::timing {

// One SM at least: `parts` is at most how many there are.
ir::Machine slice_of(const ir::Machine& machine, uint32_t parts);

} // namespace ptxrewrite::timing
