// Makes two streams of a kernel, as planned (dac-isca17 4.7, Fig. 7).
#pragma once

#include "transforms/dac/dac_plan.h"

#include <memory>

namespace ptxrewrite::transforms::dac {

// The affine stream, in SSA form. Reads the kernel, which has not been changed yet.
std::unique_ptr<ir::Function> make_affine_stream(const ir::LinearForms& forms, const Plan& plan);

// Turns the kernel's body into the non-affine stream: sites take from queues, given predicates are given; what nobody
// needs any more goes.
void make_body(ir::Function& function, const Plan& plan);

} // namespace ptxrewrite::transforms::dac
