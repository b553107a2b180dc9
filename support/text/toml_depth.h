// Determines the nesting depth of the tables of a TOML text without building them: building and destroying their tree
// is recursive, and a key of 200,000 parts would overflow the stack.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace ptxrewrite {

inline constexpr size_t deepest_toml = 128; // parts of a key, including those of the tables and arrays around it

// The offset at which the text first exceeds this depth. Exact for valid TOML; after an error it may deviate from a
// parser, which does not continue there.
std::optional<size_t> too_deep_at(std::string_view text);

} // namespace ptxrewrite
