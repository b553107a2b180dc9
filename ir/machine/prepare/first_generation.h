// Lowering for compute capability 1.x (FX5800): the cost of instructions that later generations have natively and this
// one does not. Private to ir/machine, except low_halves().
//
// The first generation has addition, logic and shifts on two 32-bit inputs, multiplication of 32 bits (composite-hpca13
// §3.1; the native multiplier has 24), multiply-add, minimum, comparison and conversion. It has no three-input logic or
// sum, no funnel shift, no scaled addition, no bit field. A 64-bit addition is two instructions with a carry. Addresses
// have 32 bits: for values that only feed addresses, the low half alone is computed.
#pragma once

#include "ir/core/function.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptxrewrite::ir {

inline constexpr uint32_t first_generation_end = 20; // the first compute capability that is none of it

// By ValueId: registers of 64 bits whose high half nobody needs on a machine with 32-bit addresses. In either state of
// a function.
std::vector<bool> low_halves(const Function& function);

// How many instructions, where that is not what weights.def says. `low_half`: of the result only that is needed.
// `sources`: one operand each; groups are left out.
std::optional<uint16_t> first_generation_weight(const Form& form, std::span<const Operand> sources, bool low_half);

} // namespace ptxrewrite::ir
