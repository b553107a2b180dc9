// Byte permutes: trees of shifts, masks and sums that only move bytes become prmt, one for each two sources.
#pragma once

#include "transforms/legal/composite_editor.h"

namespace ptxrewrite::transforms::legal::composite {

// Rewrites what `root` computes, if it only moves bytes and that saves machine instructions. `force`: if it moves them
// through at least two instructions.
bool permute_bytes(Editor& editor, ir::InstructionId root, bool force);

} // namespace ptxrewrite::transforms::legal::composite
