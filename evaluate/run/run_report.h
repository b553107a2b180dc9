// Report of a run: launches, counters, outputs, as text and as JSON.
#pragma once

#include "cuda/session.h"
#include "evaluate/launches/launch_input.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

struct RunReportOptions {
  bool counters = false;  // per instruction
  bool has_counts = true; // of blocks and instructions; false for a GPU
  bool all_buffers = false;
  bool time = false;
  size_t head = 8; // number of elements shown for each buffer
};

// `title`: the file as named by the user.
std::string run_text(const std::string& title, const LaunchInput& input, const cuda::SessionResult& result,
                     const RunReportOptions& options);
nlohmann::ordered_json run_json(const std::string& title, const LaunchInput& input, const cuda::SessionResult& result,
                                const RunReportOptions& options);

} // namespace ptxrewrite::evaluate
