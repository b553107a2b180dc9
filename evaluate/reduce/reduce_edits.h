// Edits that make a PTX text smaller: each kind finds its opportunities in a module and gives the byte ranges to
// replace. The reader and the verifier decide whether the result is still valid PTX.
#pragma once

#include "ir/core/module.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

struct TextEdit {
  uint32_t begin = 0, end = 0; // bytes of the module's source
  std::string replacement;
};
// Edits that must be applied together, in text order.
using Opportunity = std::vector<TextEdit>;

struct ReductionKind {
  std::string_view name; // "instructions"
  std::vector<Opportunity> (*find)(const ir::Module&);
};
// Ordered from coarse to fine.
std::span<const ReductionKind> reduction_kinds();

// Applies all of them to `text`. Skips an opportunity that overlaps an earlier one.
std::string apply_edits(std::string_view text, std::span<const Opportunity> opportunities);

} // namespace ptxrewrite::evaluate
