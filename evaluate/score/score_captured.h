// Original benchmarks beside the samples that stand for them: `score --paper NAME --captured DIR`. DIR/SAMPLE holds
// captures (`exec --capture`) of the benchmark that SAMPLE stands for, a folder a launch.
#pragma once

#include "evaluate/score/score_paper.h"

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// The launch files of the captures for a sample's launch file, in the order of their names; none where there are none.
std::vector<std::string> captured_launches(const std::string& folder, const std::string& launch_file);

// The launches of one program as one file, `name`: kernels of all, in the versions that all of them have.
ScoredFile merged_launches(std::vector<ScoredFile> launches, const std::string& name);

// Of each benchmark and version the sample's gain and the original's, and each figure of the paper over both. Samples
// without captures are left out.
std::string captured_text(const Paper& paper, std::span<const ScoredFile> samples,
                          std::span<const ScoredFile> originals);
nlohmann::ordered_json captured_json(const Paper& paper, std::span<const ScoredFile> samples,
                                     std::span<const ScoredFile> originals);

} // namespace ptxrewrite::evaluate
