// The transfer function: the mark of an instruction from those of its sources. Private to redundancy.cpp.
#pragma once

#include "ir/forms/darsie_mark.h"

namespace ptxrewrite::ir::redundancy {

// The mark of an operand that is not a register: special register, symbol or literal.
DarsieMark mark_of_source(const Function& function, const Operand& operand, MarkRules rules);

// True if this instruction's result may be redundant at all. False if it is atomic, or depends on other lanes or on the
// time of execution.
bool is_repeatable(const Form& form);

// True if a load of the same addresses gives the same result in all warps. `may_be_local`: generic addresses may point
// into local memory. `after_acquire`: the thread may have observed another thread's progress, so that other warps may
// load at a time when memory has different contents.
bool reads_shared_state(const Form& form, bool may_be_local, bool after_acquire);

// True if the instruction lets its thread observe effects of others, other than through a barrier of the whole block.
bool acquires(const Function& function, InstructionId instruction);
// True for a barrier of the whole block.
bool is_block_barrier(const Function& function, InstructionId instruction);

// The kind of the result, from the marks of the operands that are read (`marks[i]` belongs to the i-th operand, uniform
// for written ones) and of guard and old values (`around`).
MarkKind kind_of_result(const Form& form, std::span<const Operand> operands, std::span<const DarsieMark> marks,
                        DarsieMark around);

} // namespace ptxrewrite::ir::redundancy
