// Random kernels of a few sites each, and launches in which what the rewrites need holds, hardly holds, and does not.
#pragma once

#include "tests/fuzz/launchtime/program.h"

#include <string_view>

namespace ptxrewrite::fuzz::launchtime {

// The same kernel for the same seed. `idiom`: a kernel of this one kind of site; empty: as the seed wants.
Kernel generate(uint64_t seed, std::string_view idiom = {});

} // namespace ptxrewrite::fuzz::launchtime
