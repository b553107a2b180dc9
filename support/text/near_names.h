// "did you mean": which of the known names is nearest to one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite {

// "; did you mean 'x'?" when a known name is near, else "; there are: a, b, c" (some of them), else "".
std::string near_names(std::string_view name, std::span<const std::string> known);

} // namespace ptxrewrite
