// What a run left against what its launch file expects.
#pragma once

#include "cuda/compare.h"
#include "cuda/session.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// One for each buffer and variable of which the launch file says what it holds in the end. Errors: a file that cannot
// be read.
Result<std::vector<cuda::BufferComparison>> compare_with_expected(const launch::LaunchPlan& plan,
                                                                  const cuda::SessionResult& result);
// "" where nothing is expected.
std::string expected_text(const std::vector<cuda::BufferComparison>& comparisons);
nlohmann::ordered_json expected_json(const std::vector<cuda::BufferComparison>& comparisons);

} // namespace ptxrewrite::evaluate
