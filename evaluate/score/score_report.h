// Scores as text and as JSON: a table of kernels and versions, a CPI stack for each.
#pragma once

#include "evaluate/score/score.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

struct ScoreReportOptions {
  bool stack = true;
  bool terms = false;
  bool cost = false;
  bool energy = true;
  bool sensitivity = false;
  bool estimators = false;
};

std::string score_text(const ScoredFile& file, const ScoreReportOptions& options);
nlohmann::ordered_json score_json(const ScoredFile& file, const ScoreReportOptions& options);

// "TITANV", "1/80 of TITANV".
std::string machine_title(const ScoredFile& file);

// Returns the baseline's kernel for the same launches; nullptr if there is none.
const ScoredKernel* baseline_of(const ScoredFile& file, const ScoredKernel& kernel);

} // namespace ptxrewrite::evaluate
