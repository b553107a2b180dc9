// Compares original benchmarks with the samples that represent them: `score --paper NAME --captured DIR`. DIR/SAMPLE
// has captures (`exec --capture`) of the benchmark that SAMPLE represents, one folder per launch.
#pragma once

#include "evaluate/score/score_paper.h"

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// The launch files of the captures for a sample's launch file, sorted by name; empty if there are none.
std::vector<std::string> captured_launches(const std::string& folder, const std::string& launch_file);

// Merges the launches of one program into one file, `name`: the kernels of all, in the versions common to all.
ScoredFile merged_launches(std::vector<ScoredFile> launches, const std::string& name);

// For each benchmark and version, the gain of the sample and of the original, and each figure of the paper for both.
// Samples without captures are omitted.
std::string captured_text(const Paper& paper, std::span<const ScoredFile> samples,
                          std::span<const ScoredFile> originals);
nlohmann::ordered_json captured_json(const Paper& paper, std::span<const ScoredFile> samples,
                                     std::span<const ScoredFile> originals);

} // namespace ptxrewrite::evaluate
