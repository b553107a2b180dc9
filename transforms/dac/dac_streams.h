// Splits a kernel into the two streams of a plan (dac-isca17 4.7, Fig. 7).
#pragma once

#include "transforms/dac/dac_plan.h"

#include <memory>

namespace ptxrewrite::transforms::dac {

// Returns the affine stream in SSA form. Reads the kernel, which must not have been changed yet.
std::unique_ptr<ir::Function> make_affine_stream(const ir::LinearForms& forms, const Plan& plan);

// Turns the kernel's body into the non-affine stream: sites take their values from queues, given predicates are passed
// to the affine stream, and code that became unused is removed.
void make_body(ir::Function& function, const Plan& plan);

} // namespace ptxrewrite::transforms::dac
