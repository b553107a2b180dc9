// Four bytes that are computed alike, of the bytes of registers: rows ELEMENTS of composite_rules.def.
#pragma once

#include "transforms/composite/composite_editor.h"
#include "transforms/composite/composite_rules.h"

namespace ptxrewrite::transforms::legal::composite {

// Loads and stores of four bytes become those of one register, with instructions that take it apart and put it
// together. Their alignment is the same. Returns how many.
size_t join_byte_vectors(ir::Function& function);

// Rewrites what `root` computes, if its bytes are the elements of one of the rows and that saves machine instructions.
// Returns that row, or nullptr.
const Rule* compute_together(Editor& editor, ir::InstructionId root, std::span<const Rule* const> rows, bool force);

} // namespace ptxrewrite::transforms::legal::composite
