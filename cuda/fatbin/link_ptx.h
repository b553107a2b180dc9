// Links PTX modules as text.
#pragma once

#include <span>
#include <string>

namespace ptxrewrite::cuda {

// Concatenates the texts of several modules under one header, with the newest .version and .target. Duplicate
// definitions are detected when the result is parsed.
std::string link_ptx(std::span<const std::string> texts);

} // namespace ptxrewrite::cuda
