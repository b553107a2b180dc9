// Queries of instructions that read special registers.
#pragma once

#include "ir/core/function.h"

#include <algorithm>

namespace ptxrewrite::ir {

// Does the instruction read a special register of which two reads may differ (%clock, %globaltimer ...)? Such an
// instruction must not be removed, repeated or moved.
inline bool reads_volatile_register(const Function& function, InstructionId id) {
  return std::ranges::any_of(function.operands_of(id), [](const Operand& operand) {
    return operand.is(OperandKind::special_register) && info(static_cast<SpecialRegister>(operand.id)).is_volatile;
  });
}

} // namespace ptxrewrite::ir
