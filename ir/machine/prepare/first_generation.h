// Lowering for compute capability 1.x (FX5800): the cost of instructions that only later generations have natively.
// Private to ir/machine, except low_halves().
//
// The first generation has addition, logic and shifts on two 32-bit inputs, multiplication of 32 bits (composite-hpca13
// §3.1; the native multiplier has 24), multiply-add, minimum, comparison and conversion. It lacks three-input logic and
// sums, funnel shifts, scaled additions and bit fields. A 64-bit addition is two instructions with a carry. Addresses
// have 32 bits: of values that are only used in addresses, just the low half is computed.
#pragma once

#include "ir/core/function.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptxrewrite::ir {

inline constexpr uint32_t first_generation_end = 20; // the first compute capability after it

// By ValueId: 64-bit values whose high half is not needed on a machine with 32-bit addresses. Works on both states of a
// function.
std::vector<bool> low_halves(const Function& function);

// Number of instructions if it differs from expand.def. `low_half`: only the low half of the result is needed.
// `sources`: one operand each, without group heads.
std::optional<uint16_t> first_generation_weight(const Form& form, std::span<const Operand> sources, bool low_half);

} // namespace ptxrewrite::ir
