// Writes a random kernel as files that the command line understands: NAME.ptx, NAME.toml and the buffers' contents.
#pragma once

#include "support/result.h"
#include "tests/fuzz/kernels/kernel_program.h"

#include <string>

namespace ptxrewrite::fuzz {

// The launch file's text for one shape; buffers are in files beside it, named by buffer_file.
std::string launch_file(const Kernel& kernel, const Shape& shape);
std::string buffer_file(const Kernel& kernel, size_t buffer);

// All of it into a folder, which is made when it is not there.
Status write_case(const Kernel& kernel, const Shape& shape, const std::string& folder);

} // namespace ptxrewrite::fuzz
