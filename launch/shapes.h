// Launch shapes: the dimensions a plan's launches run with when a rewrite is verified. A launch file lists the shapes
// it is meant for; further ones are derived, and count only where the original runs clean with them, which the caller
// finds out.
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
  bool derived = false;           // the file does not say that the kernels are right with it
  bool grid_only = false;         // blocks are as given
  std::vector<Geometry> launches; // one per launch of the plan
};

// The plan's own shape first, then those the file lists, then derived ones; no two the same. Blocks of derived shapes
// hold no more threads than those given.
std::vector<LaunchShape> shapes(const LaunchPlan& plan);

// The plan with the dimensions of a shape.
LaunchPlan with_shape(const LaunchPlan& plan, const LaunchShape& shape);

} // namespace ptxrewrite::launch
