// Random kernels as PTX text.
#pragma once

#include "tests/fuzz/kernels/kernel_program.h"

#include <string>
#include <vector>

namespace ptxrewrite::fuzz {

// A module of one kernel, its device functions and its variables.
std::string print_module(const Kernel& kernel);
// Several kernels in one module; their names differ with their seeds.
std::string print_module(const std::vector<const Kernel*>& kernels);

} // namespace ptxrewrite::fuzz
