// Compares the results of a run with those expected in its launch file.
#pragma once

#include "cuda/compare.h"
#include "cuda/session.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// One comparison for each buffer and variable with expected contents in the launch file. Fails if a file cannot be
// read.
Result<std::vector<cuda::BufferComparison>> compare_with_expected(const launch::LaunchPlan& plan,
                                                                  const cuda::SessionResult& result);
// "" if there are no expected contents.
std::string expected_text(const std::vector<cuda::BufferComparison>& comparisons);
nlohmann::ordered_json expected_json(const std::vector<cuda::BufferComparison>& comparisons);

} // namespace ptxrewrite::evaluate
