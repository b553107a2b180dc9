// Covers bitwise trees of any shape with few lop3 instructions.
#pragma once

#include "transforms/composite/composite_editor.h"

#include <cstddef>
#include <optional>

namespace ptxrewrite::transforms::legal::composite {

// Rewrites the bitwise instructions of the block if this takes fewer lop3 than ptxas would generate; with `force`,
// whenever it takes fewer instructions. Returns the number of lop3 in the result, or 0 if nothing was changed.
size_t cover_logic(Editor& editor, ir::BlockId block, bool force);

// The smallest number of three-input operations that cover the block's bitwise instructions; for tests.
size_t size_of_cover(Editor& editor, ir::BlockId block);

} // namespace ptxrewrite::transforms::legal::composite
