// Averages of studies over files, and the corresponding figures of papers.
#pragma once

#include "evaluate/study/study.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

struct StudiedFile {
  std::string file;
  std::string size; // of the launch file; empty: the default
  StudyResult result;
};

// The effect of a technique on one file.
struct Shares {
  double redundant = 0; // fraction that is found: of warp instructions, or of thread instructions if only they count
  double saved_warps = 0, saved_threads = 0;
};
Shares shares_of(const StudyResult& result, Technique technique);

// Averages over files with equal weights.
struct Average {
  size_t files = 0;
  double redundant = 0;                      // mean of the fractions
  double saved_warps = 0, saved_threads = 0; // 1 - geometric mean of the remaining fraction
  double mean_saved_warps = 0;               // arithmetic mean of the saved fraction
  double geometric_saved_warps = 0;          // geometric mean; a file that saves nothing counts as 0.001
};
// `multi_dimensional`: only files with such blocks, or only the others; empty: all files.
Average average_of(const std::vector<StudiedFile>& files, Technique technique, std::optional<bool> multi_dimensional);

// A figure of a paper, and the computation of ours.
struct PaperFigure {
  std::string_view paper; // "darsie"
  std::string_view what;
  std::string_view reported; // per cent, or the paper's wording
  // Returns nothing if the row was left out, or if there is no such file.
  std::optional<double> (*ours)(const std::vector<StudiedFile>& files);
};
std::span<const PaperFigure> paper_figures();

double ratio(uint64_t part, uint64_t whole);      // 0 if `whole` is 0
std::string percent(std::optional<double> share); // "12.3"; "-" if empty

} // namespace ptxrewrite::evaluate
