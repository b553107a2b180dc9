// Simpler estimators for scored kernels, compared with the interval model (emulator/timing/estimators.h).
#pragma once

#include "evaluate/score/score.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

// Clocks of a kernel in every version, and speed-ups over the baseline, by estimator.
std::string estimators_text(const ScoredFile& file, const std::string& kernel);
nlohmann::ordered_json estimators_json(const ScoredKernel& kernel);

} // namespace ptxrewrite::evaluate
