// What the first generation of these machines (compute capability 1.x: FX5800) makes of an instruction that later ones
// have and it has not. Private to ir/machine, but for low_halves().
//
// It has addition, logic and shifts on two 32-bit inputs, multiplication of 32 bits (composite-hpca13 §3.1; the native
// one has 24), multiply-add, minimum, comparison and conversion. There is no three-input logic or sum, no funnel shift,
// no scaled addition, no bit field. An addition of 64 bits is two with a carry. Addresses have 32 bits: of what is
// computed for addresses alone, only the low half is.
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
