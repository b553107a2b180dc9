// Input that is something else than PTX, so that one message can say what it is.
#pragma once

#include <string_view>

namespace ptxrewrite::grammar {

// What the text is and how to get PTX from it; "" if it may be PTX.
std::string_view what_is_not_ptx(std::string_view text);
bool begins_as_ptx(std::string_view text);
// Has it lines that launch files (docs/launch_files.md) have, and nothing else?
bool is_launch_file(std::string_view text);

} // namespace ptxrewrite::grammar
