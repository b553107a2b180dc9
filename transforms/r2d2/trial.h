// The input and the result of a candidate of the legal form. A candidate first finds what it would change in a kernel;
// only proposals that may win are carried out, on a copy.
#pragma once

#include "transforms/common/attempt.h"
#include "transforms/manager/analyses.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace ptxrewrite::transforms::legal {

// Analyses are those of the kernel: candidates that start from the same kernel share them.
struct Trial {
  const ir::Function& kernel;
  AnalysisCache& analyses; // of `kernel`
  const DischargePolicy& policy;
  size_t added_parameters = 0; // by the candidates that were applied before
};

struct Proposal {
  double saving = 0;                  // for Attempt::estimated_saving
  std::optional<bool> needs_original; // by these edits; unset: known when they have been made
  // Numbers of the candidate's own. Proposals of a candidate for the same kernel with equal lists make the same edits.
  std::vector<uint32_t> edits;
  // Rewrites a copy of the kernel with the same IDs, and adds obligations, remarks and statistics. The kernel must be
  // as it was.
  std::function<void(Attempt&)> carry_out;
};

} // namespace ptxrewrite::transforms::legal
