// Compares the times and energies that papers report with the model's figures for our samples: `score --paper`.
#pragma once

#include "evaluate/score/score.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

struct Paper {
  std::string_view name;        // "r2d2"
  std::string_view machine;     // on which it was simulated
  std::string_view passes;      // passes whose hardware form is the paper's technique; "" if none
  bool darsie = false;          // use DARSIE's machine
  bool regless = false;         // use RegLess's machine and its comparators
  bool sliced = false;          // also run our samples on slices of the machine if the benchmarks have larger grids
  std::string_view comparators; // ScoreSettings::comparators, separated by blanks
  uint32_t l1_kib = 0;          // of its machine, if different; otherwise 0
  bool by_bound = false;        // files are distinguished by what bounds them
};
// The paper's machine: `machine` with the paper's deviations.
ir::Machine machine_of(const Paper& paper, const ir::Machine& machine);
// A machine whose memory takes no time (dac-isca17 §5.1.2): a kernel that is 1.5 times as fast on it is memory-bound.
timing::TimedMachine with_perfect_memory(const ir::Machine& machine);
inline constexpr double memory_bound_speedup = 1.5;
std::span<const Paper> papers_of_score();
const Paper* find_paper(std::string_view name);
// Does the launch file represent one of the paper's benchmarks, by its name?
bool is_benchmark(const Paper& paper, std::string_view file);

// In per cent, except for speed-ups and power efficiency, which is the ratio of the baseline's total energy to that of
// the version.
enum class PaperMeasure : uint8_t {
  speedup,
  fewer_instructions,
  less_energy,
  less_front_end,
  less_register_energy,
  less_unit_energy,
  less_sm_energy, // the sum of the three
  power_efficiency,
  preloads_from_l1,
  preloads_from_below,
  l1_requests
};
// integer: fewer than one in twenty lane instructions is floating point
enum class PaperFiles : uint8_t { all, multi_dimensional, compute_bound, memory_bound, integer, floating_point };

struct PaperTimeFigure {
  std::string_view paper, version;
  PaperMeasure measure = PaperMeasure::speedup;
  PaperFiles files = PaperFiles::all;
  double reported = 0;
  std::string_view what;
};
std::span<const PaperTimeFigure> paper_time_figures();

// One version of a file compared with its baseline; the constant cost of launches is left out, as in the papers'
// simulators.
struct FileGain {
  double speedup = 1;
  double fewer_instructions = 0; // as a fraction
  bool multi_dimensional = false;
  bool memory_bound = false; // valid if requested
  bool integer = false;
};
bool is_counted(PaperFiles files, const FileGain& gain);
// Returns false if the file was not scored with such a version.
bool gain_of(const ScoredFile& file, std::string_view version, FileGain& gain);

// The mean over files, geometric for speed-ups; for energy, the minimum and maximum over the sets of coefficients.
struct OurFigure {
  size_t files = 0;
  double least = 0, most = 0;
};
OurFigure our_figure(const PaperTimeFigure& figure, std::span<const ScoredFile> files);

std::string paper_text(const Paper& paper, std::span<const ScoredFile> files);
nlohmann::ordered_json paper_json(const Paper& paper, std::span<const ScoredFile> files);

} // namespace ptxrewrite::evaluate
