// R2D2 in the timing model: the linear phases of its hardware form, and the addresses that its hardware adds
// (r2d2-isca23 §4).
#pragma once

#include "emulator/timing/model.h"

namespace ptxrewrite::timing {

// Adds the linear phases of `input`'s launch to the technique; does nothing for a kernel in another form. The recording
// must outlive the technique.
void add_linear_phases(const ModelInput& input, Technique& technique);

} // namespace ptxrewrite::timing
