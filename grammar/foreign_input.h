// Recognises the kind of input that is not PTX (CUDA source, cubin and others), for one error message that names it.
#pragma once

#include <string_view>

namespace ptxrewrite::grammar {

// A message that names the format and says how to get PTX from it; "" if the text may be PTX.
std::string_view what_is_not_ptx(std::string_view text);
bool begins_as_ptx(std::string_view text);
// Has it lines that launch files (docs/launch_files.md) have, and nothing else?
bool is_launch_file(std::string_view text);

} // namespace ptxrewrite::grammar
