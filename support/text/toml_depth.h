// How deep the tables of a TOML text nest, found without building them: whoever builds or destroys a tree of them goes
// down by recursion, and a key of 200,000 parts takes the stack with it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace ptxrewrite {

inline constexpr size_t deepest_toml = 128; // parts of a key, with those of the tables and arrays around it

// Where the text first goes deeper. Exact for valid TOML; what stands behind an error is not looked at in the same way
// as a parser would, but then it will not get there.
std::optional<size_t> too_deep_at(std::string_view text);

} // namespace ptxrewrite
