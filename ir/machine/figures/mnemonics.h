// Names of the machine instructions for a PTX instruction, for listings: the rows of mnemonics.def.
#pragma once

#include "ir/isa/isa.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace ptxrewrite::ir {

// Separated by blanks, in order of issue: "IADD3 IADD3.X". Empty if no row matches the form. `literal`: whether the
// last operand is a literal. `fused`: names of the fusion rules by which it absorbs other instructions.
std::string_view machine_mnemonics(const Form& form, uint32_t compute_capability, bool literal,
                                   std::span<const std::string_view> fused);

} // namespace ptxrewrite::ir
