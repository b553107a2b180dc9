// Emits the registers of a hardware-form kernel that hold one of several linear forms.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "transforms/r2d2/r2d2_plan.h"
#include "transforms/r2d2/r2d2_sections.h"

#include <span>
#include <vector>

namespace ptxrewrite::transforms::r2d2 {

// Appends the source operands of an `r2d2.mov`.
void append_sum(std::vector<ir::Operand>& operands, const SiteOperands& sum);
std::string_view move_mnemonic(unsigned width);

// Adds the plan's joins: moves at the ends of the predecessor blocks, or after the definition of the predicate that
// chooses. `operands`: the operands of each site of the plan. Returns the registers.
std::vector<ir::ValueId> emit_joins(ir::Function& function, const ir::LinearForms& forms, const Plan& plan,
                                    std::span<const SiteOperands> operands);

} // namespace ptxrewrite::transforms::r2d2
