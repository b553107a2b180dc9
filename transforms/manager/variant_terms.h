// The annotations of a variant that name its original and state its terms: `//@ PASS KEYWORD REST` in its entry block
// (transforms/common/variant.h lists the keywords).
#pragma once

#include "ir/core/function.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::transforms {

// The text of an annotation that may be a term; empty if it cannot be one.
std::string_view term_text(const ir::Function& function, ir::InstructionId id);

// Calls `visit(keyword, rest)` for each term.
void for_each_term(const ir::Function& function,
                   const std::function<void(std::string_view keyword, std::string_view rest)>& visit);

// Returns the kernel that `function` is a variant of, or nothing if it is not a variant.
std::optional<std::string> original_of(const ir::Function& function);

} // namespace ptxrewrite::transforms
