// Linking PTX as text.
#pragma once

#include <span>
#include <string>

namespace ptxrewrite::cuda {

// One module of several: texts behind one another under one header, with the newest .version and .target of all. Names
// that two of them define are found when it is read.
std::string link_ptx(std::span<const std::string> texts);

} // namespace ptxrewrite::cuda
