// Turns sums of products of bytes into dp4a.
#pragma once

#include "transforms/composite/composite_editor.h"
#include "transforms/composite/composite_rules.h"

namespace ptxrewrite::transforms::legal::composite {

// Rewrites the sum whose last addition is `root` by the first matching row; all rows are of family dot. Returns the
// row, or nullptr if none matches.
const Rule* combine_products(Editor& editor, ir::InstructionId root, std::span<const RuleRow* const> rows);

} // namespace ptxrewrite::transforms::legal::composite
