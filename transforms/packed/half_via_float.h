// Operations on halves that are widened to f32 and rounded back -> one instruction on halves.
//
// A sum, difference or product of two halves in f32 has 24 bits, twice a half's 11 bits plus two: double rounding gives
// the same result as rounding once (tests/unit/transforms/packed tries all pairs). This does not hold for a
// multiply-add, which is not rewritten. NaNs are canonical in both forms; subnormal halves are normal f32 numbers, so
// .ftz of the f32 instruction flushes none of them.
#pragma once

#include "ir/core/function.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms::packed {

// A conversion to f16, or to both halves of f16x2, of the result of one f32 operation on halves.
struct HalfOperation {
  ir::InstructionId root; // cvt.rn.f16.f32 or cvt.rn.f16x2.f32
  struct Half {
    ir::InstructionId operation;       // f32
    std::vector<ir::Operand> operands; // f16: registers, or literals as their bits
    std::string_view mnemonic;         // "add.rn.f16"
  };
  std::vector<Half> halves; // lower half first
};

std::vector<HalfOperation> find_half_operations(const ir::Function& function);
std::string description(const ir::Function& function, const HalfOperation& half);
void replace(ir::Function& function, const HalfOperation& half);

} // namespace ptxrewrite::transforms::packed
