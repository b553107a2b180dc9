// Bitwise trees of any shape become few lop3.
#pragma once

#include "transforms/composite/composite_editor.h"

#include <cstddef>
#include <optional>

namespace ptxrewrite::transforms::legal::composite {

// Rewrites the bitwise instructions of the block where that takes fewer lop3 than ptxas would make of them by itself;
// with `force`, wherever it takes fewer instructions. Returns how many lop3 stand there, 0 if nothing was done.
size_t cover_logic(Editor& editor, ir::BlockId block, bool force);

// The fewest three-input operations that the cover of the block's bitwise instructions takes; for tests.
size_t size_of_cover(Editor& editor, ir::BlockId block);

} // namespace ptxrewrite::transforms::legal::composite
