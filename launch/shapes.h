// Launch shapes: dimensions with which a plan's launches are run to verify a rewrite. A launch file lists the shapes
// that it supports; further ones are derived, and are valid only if the original runs without findings, which the
// caller has to check.
#pragma once

#include "launch/launch_plan.h"

#include <string>
#include <vector>

namespace ptxrewrite::launch {

struct Geometry {
  Dim3 grid, block;
  uint32_t dynamic_shared = 0;
  bool operator==(const Geometry&) const = default;
};

struct LaunchShape {
  std::string name;               // "as given", "shapes[0]", "one block", "partial warp" ...
  bool derived = false;           // the file does not state that the kernels support it
  bool grid_only = false;         // the block is as given
  std::vector<Geometry> launches; // one per launch of the plan
};

// The plan's own shape first, then those listed in the file, then derived ones; without duplicates. Blocks of derived
// shapes have at most as many threads as those given.
std::vector<LaunchShape> shapes(const LaunchPlan& plan);

// The plan with the dimensions of a shape.
LaunchPlan with_shape(const LaunchPlan& plan, const LaunchShape& shape);

} // namespace ptxrewrite::launch
