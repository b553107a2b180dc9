// A kernel as PTX.
#pragma once

#include "tests/fuzz/launchtime/program.h"

#include <string>

namespace ptxrewrite::fuzz::launchtime {

std::string print(const Kernel& kernel);

} // namespace ptxrewrite::fuzz::launchtime
