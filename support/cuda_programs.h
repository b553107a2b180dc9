// Where programs of the CUDA toolkit are installed on this machine.
#pragma once

#include <string>
#include <vector>

namespace ptxrewrite {

// Folders that may hold ptxas, nvdisasm and the like, in search order: $PATH, bin/ of $CUDA_HOME and $CUDA_PATH, bin/
// of toolkits in the usual places (newest version first), NVIDIA's wheels in $VIRTUAL_ENV and in the environment that
// `./bootstrap ptxas` makes. Folders need not exist.
std::vector<std::string> cuda_program_folders();

} // namespace ptxrewrite
