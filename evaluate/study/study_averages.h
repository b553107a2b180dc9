// Averages of studies over files, and the figures that papers report about their benchmarks.
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
  std::string size; // of the launch file; empty: its own
  StudyResult result;
};

// What a technique does to one file.
struct Shares {
  double redundant = 0; // what is found, of all: warp instructions, or threads where only they count
  double saved_warps = 0, saved_threads = 0;
};
Shares shares_of(const StudyResult& result, Technique technique);

// Over files, all of the same weight.
struct Average {
  size_t files = 0;
  double redundant = 0;                      // mean of the shares
  double saved_warps = 0, saved_threads = 0; // 1 - geometric mean of what is left
  double mean_saved_warps = 0;      // arithmetic mean of what is saved, and its geometric mean, in which a file
  double geometric_saved_warps = 0; // that saves nothing counts as a thousandth
};
// `multi_dimensional`: only files with such blocks, or only the others; nothing: all files.
Average average_of(const std::vector<StudiedFile>& files, Technique technique, std::optional<bool> multi_dimensional);

// A figure of a paper's, and how ours is made.
struct PaperFigure {
  std::string_view paper; // "darsie"
  std::string_view what;
  std::string_view reported; // per cent, or what the text says of it
  // Nothing where the row was left out, or no file is of that sort.
  std::optional<double> (*ours)(const std::vector<StudiedFile>& files);
};
std::span<const PaperFigure> paper_figures();

double ratio(uint64_t part, uint64_t whole);      // 0 of nothing
std::string percent(std::optional<double> share); // "12.3"; "-" without one

} // namespace ptxrewrite::evaluate
