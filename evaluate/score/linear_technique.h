// R2D2 in the timing model: the linear phases of its hardware form, and the addresses that its machine adds up
// (r2d2-isca23 §4).
#pragma once

#include "emulator/timing/model.h"

namespace ptxrewrite::timing {

// What the launch of `input` has of it, into the technique beside whatever else is there; nothing for a kernel in any
// other form. The recording must outlive the technique.
void add_linear_phases(const ModelInput& input, Technique& technique);

} // namespace ptxrewrite::timing
