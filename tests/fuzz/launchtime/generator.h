// Random kernels of a few sites each, and launches in which the rewrites' conditions hold, barely hold, or fail.
#pragma once

#include "tests/fuzz/launchtime/program.h"

#include <string_view>

namespace ptxrewrite::fuzz::launchtime {

// The same kernel for the same seed. `idiom`: a kernel with this one kind of site; empty: chosen by the seed.
Kernel generate(uint64_t seed, std::string_view idiom = {});

} // namespace ptxrewrite::fuzz::launchtime
