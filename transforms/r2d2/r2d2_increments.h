// Emits the registers of a hardware-form kernel whose values change from trip to trip of a loop.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "transforms/r2d2/r2d2_plan.h"
#include "transforms/r2d2/r2d2_sections.h"

#include <span>
#include <vector>

namespace ptxrewrite::transforms::r2d2 {

// Adds the plan's increments to the loops: block parameters of the headers, their initial values on loop entry, and an
// addition at the end of each trip. `steps`: the amount added, by increment. Returns the registers.
std::vector<ir::ValueId> emit_increments(ir::Function& function, const ir::LinearForms& forms, const Plan& plan,
                                         std::span<const Step> steps);

} // namespace ptxrewrite::transforms::r2d2
