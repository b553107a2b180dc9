// Makes a random kernel smaller while something stays true of it: statements go, ifs and loops give way to their
// bodies. For disagreements between oracle and emulator, which need the tree; PTX text has `ptxrewrite reduce`.
#pragma once

#include "tests/fuzz/kernels/kernel_program.h"

#include <functional>

namespace ptxrewrite::fuzz {

// `is_interesting` must hold for `kernel`. It is asked about kernels that may not be sound; what is returned is, in
// `shape`, as far as the oracle can tell.
Kernel shrink_kernel(const Kernel& kernel, const Shape& shape,
                     const std::function<bool(const Kernel&)>& is_interesting);

size_t count_statements(const Kernel& kernel);

} // namespace ptxrewrite::fuzz
