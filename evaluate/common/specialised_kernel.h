// Kernels for one launch, made while a program runs because it repeats that launch: `exec --specialise`. The launch's
// shape and its integers become literals (transforms/darsie/darsie_specialise.h), and the program's passes follow.
#pragma once

#include "ir/core/module.h"
#include "launch/variants.h"
#include "support/result.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// A module with the kernel and its variant, which requires exactly this launch.
struct SpecialisedKernel {
  std::unique_ptr<ir::Module> module;
  std::string text;
  launch::Variants variants;
};

// `key`: of launch::LaunchKeys. `passes` may be empty. Fails if the kernel, or a function of its module, uses a
// variable outside of functions, which another module would have for itself, if it calls a function of the driver or
// through a pointer, or if the model does not count fewer instructions.
Result<SpecialisedKernel> specialised_kernel(const ir::Module& original, const std::string& kernel,
                                             const std::string& key, const std::string& passes);

// Launches of one kernel, for reports.
struct SpecialisedCounts {
  std::string kernel;
  uint64_t launches = 0, specialised = 0;
  uint64_t made = 0;             // kernels for one launch
  std::set<std::string> reasons; // why others were not made
};

std::string specialised_counts_text(uint64_t times, const std::vector<SpecialisedCounts>& counts);
// {"after": ..., "kernels": [...]}
std::string specialised_counts_json(uint64_t times, const std::vector<SpecialisedCounts>& counts);

} // namespace ptxrewrite::evaluate
