// What a run left against what its launch file expects.
#pragma once

#include "cuda/compare.h"
#include "cuda/session.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ptxrewrite::cli {

// One for each buffer and variable of which the launch file says what it holds in the end. Errors: a file that cannot
// be read.
Result<std::vector<BufferComparison>> compare_with_expected(const launch::LaunchPlan& plan,
                                                            const SessionResult& result);
// "" where nothing is expected.
std::string expected_text(const std::vector<BufferComparison>& comparisons);
nlohmann::ordered_json expected_json(const std::vector<BufferComparison>& comparisons);

} // namespace ptxrewrite::cli
