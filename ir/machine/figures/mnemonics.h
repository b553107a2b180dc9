// Names of the machine instructions that stand for one of PTX, for listings: the rows of mnemonics.def.
#pragma once

#include "ir/isa/isa.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace ptxrewrite::ir {

// Separated by blanks, in order of issue: "IADD3 IADD3.X". Empty where no row knows the form. `literal`: the last
// operand is one. `fused`: names of the fusion rules by which it does the work of others.
std::string_view machine_mnemonics(const Form& form, uint32_t compute_capability, bool literal,
                                   std::span<const std::string_view> fused);

} // namespace ptxrewrite::ir
