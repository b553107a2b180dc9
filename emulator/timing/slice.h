// A slice of a machine: one SM in `parts`, with its share of L2, of bandwidth and of the distribution of blocks. A part
// of a large grid runs on a slice like the whole grid on the machine; so a small grid shows the behaviour of a grid
// `parts` times as large. L2 data shared with SMs outside of the slice are not modelled.
#pragma once

#include "ir/machine/figures/machine.h"

namespace ptxrewrite::timing {

// The slice has at least one SM: `parts` is limited to the number of SMs.
ir::Machine slice_of(const ir::Machine& machine, uint32_t parts);

} // namespace ptxrewrite::timing
