// Shrinks a random kernel while a property holds: removes statements, replaces ifs and loops by their bodies. For
// disagreements between oracle and emulator, which need the tree; PTX text has `ptxrewrite reduce`.
#pragma once

#include "tests/fuzz/kernels/kernel_program.h"

#include <functional>

namespace ptxrewrite::fuzz {

// `is_interesting` must hold for `kernel`. It is called with kernels that may not be sound; the result is sound in
// `shape` according to the oracle.
Kernel shrink_kernel(const Kernel& kernel, const Shape& shape,
                     const std::function<bool(const Kernel&)>& is_interesting);

size_t count_statements(const Kernel& kernel);

} // namespace ptxrewrite::fuzz
