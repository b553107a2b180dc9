// What one instruction makes of its sources' marks. Private to ir/analysis/redundancy/redundancy.cpp.
#pragma once

#include "ir/forms/darsie_mark.h"

namespace ptxrewrite::ir::redundancy {

// The mark of something that an operand reads and that is no register: special registers, symbols, literals.
DarsieMark mark_of_source(const Function& function, const Operand& operand, MarkRules rules);

// May this instruction's result be marked at all, whatever its sources are? Not if it is atomic, depends on other lanes
// or on when it is executed.
bool is_repeatable(const Form& form);

// Loads: does memory hold the same for all warps that read the same addresses? `may_be_local`: generic addresses may
// point into local memory. `after_acquire`: the thread may have learned from another one what it did before, so that
// other warps may load at a time when memory holds something else.
bool reads_shared_state(const Form& form, bool may_be_local, bool after_acquire);

// Does the instruction let its thread see what others did, other than by a barrier of the whole block?
bool acquires(const Function& function, InstructionId instruction);
// A barrier at which the whole block meets.
bool is_block_barrier(const Function& function, InstructionId instruction);

// The kind of the result, from the marks of the operands that are read (`marks[i]` belongs to the i-th one, uniform for
// those that are written), and of guard and old values, `around`.
MarkKind kind_of_result(const Form& form, std::span<const Operand> operands, std::span<const DarsieMark> marks,
                        DarsieMark around);

} // namespace ptxrewrite::ir::redundancy
