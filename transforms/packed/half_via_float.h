// Halves that are widened, computed as f32 and rounded back to halves -> one instruction on halves.
//
// A sum, difference or product of two halves in f32 has 24 bits, twice a half's 11 and two more: rounding it twice
// gives what rounding once gives (tests/unit/transforms/packed tries all pairs). A product and a sum together have no
// such rule and stay. NaNs come out canonical in both; subnormal halves are normal numbers of f32, so that .ftz of the
// f32 instruction finds nothing to flush.
#pragma once

#include "ir/core/function.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms::packed {

// One conversion to f16, or to both halves of f16x2, of what one f32 operation makes of halves.
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
