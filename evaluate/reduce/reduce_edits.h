// Ways to make a PTX text smaller: each finds its opportunities in a module and says which bytes of the text would be
// replaced by what. Whether the result is still PTX is for the reader and the verifier to say.
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
// Edits that belong together, in the order of the text.
using Opportunity = std::vector<TextEdit>;

struct ReductionKind {
  std::string_view name; // "instructions"
  std::vector<Opportunity> (*find)(const ir::Module&);
};
// From coarse to fine.
std::span<const ReductionKind> reduction_kinds();

// `text` with all of them applied. An opportunity that overlaps an earlier one is left out.
std::string apply_edits(std::string_view text, std::span<const Opportunity> opportunities);

} // namespace ptxrewrite::evaluate
