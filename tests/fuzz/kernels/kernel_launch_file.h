// Writes a random kernel as files for the command line: NAME.ptx, NAME.toml and the buffers' contents.
#pragma once

#include "support/result.h"
#include "tests/fuzz/kernels/kernel_program.h"

#include <string>

namespace ptxrewrite::fuzz {

// The launch file's text for one shape; buffers are in files beside it, named by buffer_file.
std::string launch_file(const Kernel& kernel, const Shape& shape);
std::string buffer_file(const Kernel& kernel, size_t buffer);

// Writes all files to a folder, which is created if it does not exist.
Status write_case(const Kernel& kernel, const Shape& shape, const std::string& folder);

} // namespace ptxrewrite::fuzz
