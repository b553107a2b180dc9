// Sums of products of bytes become dp4a.
#pragma once

#include "transforms/composite/composite_editor.h"
#include "transforms/composite/composite_rules.h"

namespace ptxrewrite::transforms::legal::composite {

// Rewrites the sum whose last addition is `root` by the first of the rows, all of family dot, that it holds. Returns
// that row, or nullptr.
const Rule* combine_products(Editor& editor, ir::InstructionId root, std::span<const Rule* const> rows);

} // namespace ptxrewrite::transforms::legal::composite
