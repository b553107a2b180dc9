#include "evaluate/study/study_averages.h"

#include "evaluate/study/study_datapath.h"
#include "evaluate/study/study_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace ptxrewrite::evaluate {
namespace {

using Files = std::vector<StudiedFile>;

std::optional<double> mean(const Files& files, std::optional<double> (*figure)(const StudyResult&)) {
  double sum = 0;
  size_t count = 0;
  for (const StudiedFile& file : files)
    if (const std::optional<double> one = figure(file.result)) sum += *one, ++count;
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

template <double (*figure)(const emulator::DatapathCounts&)> std::optional<double> datapath_mean(const Files& files) {
  return mean(files, [](const StudyResult& result) -> std::optional<double> {
    if (!result.row(Technique::scalar).present) return std::nullopt;
    return figure(result.datapath);
  });
}

// Selects files by the dimensions of their blocks.
enum class Blocks : uint8_t { any, one_dimension, more };
std::optional<bool> multi_dimensional(Blocks blocks) {
  if (blocks == Blocks::any) return std::nullopt;
  return blocks == Blocks::more;
}
template <Technique technique, Blocks blocks, double Average::*share>
std::optional<double> average(const Files& files) {
  const Average found = average_of(files, technique, multi_dimensional(blocks));
  if (found.files == 0) return std::nullopt;
  return found.*share;
}
template <Technique technique, Blocks blocks = Blocks::any> std::optional<double> redundant(const Files& files) {
  return average<technique, blocks, &Average::redundant>(files);
}
template <Technique technique, Blocks blocks = Blocks::any> std::optional<double> fewer_warps(const Files& files) {
  return average<technique, blocks, &Average::saved_warps>(files);
}
template <Technique technique> std::optional<double> fewer_threads(const Files& files) {
  return average<technique, Blocks::any, &Average::saved_threads>(files);
}

// The fraction that DARSIE skips in a benchmark for which the paper has a figure.
std::optional<double> skipped_in(const Files& files, std::string_view sample) {
  for (const StudiedFile& file : files)
    if (std::filesystem::path(file.file).stem() == sample && file.result.row(Technique::darsie).present)
      return shares_of(file.result, Technique::darsie).saved_warps;
  return std::nullopt;
}

using enum Technique;
constexpr PaperFigure figures[] = {
    {"darsie", "Fig. 1, redundant in the grid, average", "less than in the block", redundant<grid>},
    {"darsie", "Fig. 1, redundant in the block, average", "33", redundant<block>},
    {"darsie", "Fig. 1, redundant in the warp, average", "less than in the block", redundant<warp>},
    {"darsie", "Fig. 2, 1D: uniform", "common", redundant<uniform, Blocks::one_dimension>},
    {"darsie", "Fig. 2, 1D: affine", "little to none", redundant<affine, Blocks::one_dimension>},
    {"darsie", "Fig. 2, 1D: unstructured", "little to none", redundant<unstructured, Blocks::one_dimension>},
    {"darsie", "Fig. 2, 2D: uniform", "common", redundant<uniform, Blocks::more>},
    {"darsie", "Fig. 2, 2D: affine", "much", redundant<affine, Blocks::more>},
    {"darsie", "Fig. 2, 2D: unstructured", "much", redundant<unstructured, Blocks::more>},
    {"darsie", "Fig. 9, 1D: UV, fewer warp instructions, geomean", "-", fewer_warps<reuse, Blocks::one_dimension>},
    {"darsie", "Fig. 9, 1D: DAC-IDEAL", "about as DARSIE", fewer_warps<dac_ideal, Blocks::one_dimension>},
    {"darsie", "Fig. 9, 1D: DARSIE", "about as DAC-IDEAL", fewer_warps<darsie, Blocks::one_dimension>},
    {"darsie", "Fig. 10, 2D: UV, fewer warp instructions, geomean", "-", fewer_warps<reuse, Blocks::more>},
    {"darsie", "Fig. 10, 2D: DAC-IDEAL", "11", fewer_warps<dac_ideal, Blocks::more>},
    {"darsie", "Fig. 10, 2D: DARSIE, geometric mean of what is left", "17", fewer_warps<darsie, Blocks::more>},
    {"darsie", "the same, geometric mean of the reductions (6.1)", "17",
     average<darsie, Blocks::more, &Average::geometric_saved_warps>},
    {"darsie", "the same, arithmetic mean (abstract)", "23", average<darsie, Blocks::more, &Average::mean_saved_warps>},
    {"darsie", "Fig. 9, LIB: DARSIE (libor)", "75", [](const Files& files) { return skipped_in(files, "libor"); }},
    {"darsie", "Fig. 10, FWS: DARSIE (floyd_warshall)", "21",
     [](const Files& files) { return skipped_in(files, "floyd_warshall"); }},
    {"darsie", "of what is redundant in the block, marked", "-",
     [](const Files& files) {
       return mean(files, [](const StudyResult& result) { return mark_recall(result.marks); });
     }},
    {"darsie", "of what is marked, redundant in the block", "-",
     [](const Files& files) {
       return mean(files, [](const StudyResult& result) { return mark_precision(result.marks); });
     }},
    {"r2d2", "WP: fewer thread instructions, average (Fig. 4)", "27", fewer_threads<within_warps>},
    {"r2d2", "TB: fewer thread instructions, average (Fig. 4)", "22", fewer_threads<within_blocks>},
    {"r2d2", "LN: fewer thread instructions, average (Fig. 4)", "33", fewer_threads<linear>},
    {"r2d2", "DAC: fewer warp instructions, average (Fig. 12)", "20", fewer_warps<dac_ideal>},
    {"r2d2", "DARSIE: fewer warp instructions, average (Fig. 12)", "18", fewer_warps<darsie>},
    {"r2d2", "DARSIE+Scalar: fewer warp instructions, average (Fig. 12)", "19", fewer_warps<darsie_scalar>},
    {"composite", "fewer instructions fetched by composites (6.2: energy of fetch, decode, schedule)", "17",
     fewer_warps<composite>},
    {"composite", "redundant instructions, average (Fig. 1)", "10 .. 50", datapath_mean<redundant_share>},
    {"composite", "stalls by 16-bit results that are wider (5.2)", "0.1", datapath_mean<stall_share>},
    {"composite", "energy of register files saved, without composites (6.2: all three)", "50",
     datapath_mean<register_energy_saved>},
};

} // namespace

double ratio(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Shares shares_of(const StudyResult& result, Technique technique) {
  const StudyRow& row = result.row(technique);
  const emulator::WorkCount& all = result.baseline;
  Shares shares;
  shares.redundant = row.counts_warps ? ratio(row.redundant.warps, all.warps) : ratio(row.redundant.lanes, all.lanes);
  shares.saved_warps = all.warps ? 1 - ratio(row.left.warps, all.warps) : 0;
  shares.saved_threads = all.lanes ? 1 - ratio(row.left.lanes, all.lanes) : 0;
  return shares;
}

Average average_of(const Files& files, Technique technique, std::optional<bool> multi_dimensional) {
  Average average;
  double log_warps = 0, log_threads = 0, log_saved = 0;
  for (const StudiedFile& file : files) {
    if (file.result.baseline.warps == 0 || !file.result.row(technique).present) continue;
    if (multi_dimensional && file.result.is_multi_dimensional() != *multi_dimensional) continue;
    const Shares shares = shares_of(file.result, technique);
    ++average.files;
    average.redundant += shares.redundant;
    log_warps += std::log(std::max(1 - shares.saved_warps, 1e-9));
    log_threads += std::log(std::max(1 - shares.saved_threads, 1e-9));
    average.mean_saved_warps += shares.saved_warps;
    log_saved += std::log(std::max(shares.saved_warps, 1e-3));
  }
  if (average.files == 0) return average;
  const auto count = static_cast<double>(average.files);
  average.redundant /= count;
  average.saved_warps = 1 - std::exp(log_warps / count);
  average.saved_threads = 1 - std::exp(log_threads / count);
  average.mean_saved_warps /= count;
  average.geometric_saved_warps = std::exp(log_saved / count);
  return average;
}

std::span<const PaperFigure> paper_figures() {
  return figures;
}

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f}", 100 * *share) : "-";
}

} // namespace ptxrewrite::evaluate
