// "did you mean": the known name that is most similar to an unknown one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite {

// "; did you mean 'x'?" if a known name is similar, else "; there are: a, b, c" (some of them), or "".
std::string near_names(std::string_view name, std::span<const std::string> known);

} // namespace ptxrewrite
