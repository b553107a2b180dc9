// Where programs of the CUDA toolkit are installed on this machine.
#pragma once

#include <string>
#include <vector>

namespace ptxrewrite {

// Folders that may hold ptxas, nvdisasm and the like, in search order: $PATH, bin/ of $CUDA_HOME and $CUDA_PATH, bin/
// of toolkits in the usual places (newest version first), NVIDIA's wheels in $VIRTUAL_ENV, in
// environments that were added, and in the one that `./bootstrap ptxas` makes. Folders need not exist.
std::vector<std::string> cuda_program_folders();

// Also searches a Python environment: that of the interpreter that loaded this library. Not for several threads.
void add_python_environment(const std::string& prefix);

} // namespace ptxrewrite
