// How a kernel uses its textures. For one texture of a launch file, a GPU has two kinds of handles: texture objects for
// sampling, and surface objects for loads and stores by coordinates.
#pragma once

#include "ir/core/module.h"
#include "launch/launch_plan.h"
#include "support/result.h"

#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

struct TextureUse {
  std::vector<bool> textures;               // by parameter: does it reach tex, tld4 or txq?
  std::vector<bool> surfaces;               // by parameter: does it reach suld, sust, sured or suq?
  std::set<std::string> surface_references; // .surfref variables that suld, sust or sured use
  bool samples_numbers_1d = false;          // tex.1d with floating-point coordinates
  bool samples_elements_1d = false;         // tex.1d with integer coordinates
};

// Traces handles through registers of the kernel itself; a handle passed to a function counts as unused.
TextureUse texture_use_of(const ir::Function& kernel);

// By texture of the plan: does this launch use its surface? Fails if a launch uses one texture as both.
Result<std::vector<bool>> surface_arguments(const launch::LaunchPlan& plan, const launch::Launch& launch,
                                            const TextureUse& use);

} // namespace ptxrewrite::cuda
