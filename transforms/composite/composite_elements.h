// Four bytes that are computed alike from the bytes of registers: rows ELEMENTS of composite_rules.def.
#pragma once

#include "transforms/composite/composite_editor.h"
#include "transforms/composite/composite_rules.h"

namespace ptxrewrite::transforms::legal::composite {

// Replaces loads and stores of four bytes by those of one register, with instructions that split and assemble it. The
// alignment is the same. Returns their number.
size_t join_byte_vectors(ir::Function& function);

// Rewrites the computation of `root` if its bytes are the elements of one of the rows and the rewriting saves machine
// instructions. Returns that row, or nullptr.
const Rule* compute_together(Editor& editor, ir::InstructionId root, std::span<const RuleRow* const> rows, bool force);

} // namespace ptxrewrite::transforms::legal::composite
