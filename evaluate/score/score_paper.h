// Times and energies that papers report beside the model's figures for our samples: `score --paper`.
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
  std::string_view machine;     // that it was simulated on
  std::string_view passes;      // whose hardware form is its technique; "": none
  bool darsie = false;          // DARSIE's machine is wanted
  bool regless = false;         // RegLess's machine is, and what it is compared with
  bool sliced = false;          // ours run on slices of the machine, too, where its benchmarks have larger grids
  std::string_view comparators; // ScoreSettings::comparators, with blanks between
  uint32_t l1_kib = 0;          // of its machine, where it differs; 0: it does not
  bool by_bound = false;        // files are told apart by what bounds them
};
// The paper's machine: `machine` with what the paper has otherwise.
ir::Machine machine_of(const Paper& paper, const ir::Machine& machine);
// A machine whose memory takes no time (dac-isca17 §5.1.2): a kernel that is 1.5 times as fast on it is memory-bound.
timing::TimedMachine with_perfect_memory(const ir::Machine& machine);
inline constexpr double memory_bound_speedup = 1.5;
std::span<const Paper> papers_of_score();
const Paper* find_paper(std::string_view name);
// Does the launch file stand for one of the paper's benchmarks? Its name says so.
bool is_benchmark(const Paper& paper, std::string_view file);

// Per cent, but for speed-ups and power efficiency: the energy of the baseline to that of the version, all of it.
enum class PaperMeasure : uint8_t {
  speedup,
  fewer_instructions,
  less_energy,
  less_front_end,
  less_register_energy,
  less_unit_energy,
  less_sm_energy, // the three together
  power_efficiency,
  preloads_from_l1,
  preloads_from_below,
  l1_requests
};
// Integer: whose lanes compute hardly anything in floating point (fewer than one instruction in twenty).
enum class PaperFiles : uint8_t { all, multi_dimensional, compute_bound, memory_bound, integer, floating_point };

struct PaperTimeFigure {
  std::string_view paper, version;
  PaperMeasure measure = PaperMeasure::speedup;
  PaperFiles files = PaperFiles::all;
  double reported = 0;
  std::string_view what;
};
std::span<const PaperTimeFigure> paper_time_figures();

// One version of a file against its baseline; launches' constant cost is left out, as the papers' simulators do.
struct FileGain {
  double speedup = 1;
  double fewer_instructions = 0; // share
  bool multi_dimensional = false;
  bool memory_bound = false; // where that was asked for
  bool integer = false;
};
bool is_counted(PaperFiles files, const FileGain& gain);
// False: the file was not scored with such a version.
bool gain_of(const ScoredFile& file, std::string_view version, FileGain& gain);

// The mean over files, geometric for speed-ups; energy under every set of coefficients, from the least to the most.
struct OurFigure {
  size_t files = 0;
  double least = 0, most = 0;
};
OurFigure our_figure(const PaperTimeFigure& figure, std::span<const ScoredFile> files);

std::string paper_text(const Paper& paper, std::span<const ScoredFile> files);
nlohmann::ordered_json paper_json(const Paper& paper, std::span<const ScoredFile> files);

} // namespace ptxrewrite::evaluate
