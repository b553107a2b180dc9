// What a kernel does with the textures that it is given. A GPU has two kinds of handles for what a launch file calls a
// texture: texture objects, which are sampled, and surface objects, which are loaded and stored by coordinates.
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
  std::set<std::string> surface_references; // .surfref variables that suld, sust or sured name
  bool samples_numbers_1d = false;          // tex.1d at coordinates with fractions
  bool samples_elements_1d = false;         // tex.1d at integers
};

// Handles are followed through registers of the kernel itself; those that it hands on to functions reach nothing.
TextureUse texture_use_of(const ir::Function& kernel);

// By texture of the plan: is its surface what this launch's arguments mean? Error: one texture as both.
Result<std::vector<bool>> surface_arguments(const launch::LaunchPlan& plan, const launch::Launch& launch,
                                            const TextureUse& use);

} // namespace ptxrewrite::cuda
