// Queries of instructions that read special registers.
#pragma once

#include "ir/core/function.h"

#include <algorithm>

namespace ptxrewrite::ir {

// A special register of which two reads may differ (%clock, %globaltimer ...)?
inline bool is_volatile_register(const Operand& operand) {
  return operand.is(OperandKind::special_register) && info(static_cast<SpecialRegister>(operand.id)).is_volatile;
}

// Does the instruction read one? It must not be removed, repeated or moved.
inline bool reads_volatile_register(const Function& function, InstructionId id) {
  return std::ranges::any_of(function.operands_of(id), is_volatile_register);
}

} // namespace ptxrewrite::ir
