#include "cli/study_averages.h"

#include "cli/study_datapath.h"

#include <algorithm>
#include <cmath>

namespace ptxrewrite::cli {
namespace {

using Files = std::vector<StudiedFile>;

double datapath_mean(const Files& files, double (*figure)(const emulator::DatapathCounts&)) {
  double sum = 0;
  for (const StudiedFile& file : files)
    sum += figure(file.result.datapath);
  return files.empty() ? 0 : sum / static_cast<double>(files.size());
}

constexpr PaperFigure figures[] = {
    {"darsie", "redundant in the block, average (Fig. 1)", "33",
     [](const Files& files) { return average_of(files, Technique::block, {}).redundant; }},
    {"darsie", "DAC-IDEAL: fewer warp instructions, 2D geomean (Fig. 10)", "11",
     [](const Files& files) { return average_of(files, Technique::dac_ideal, true).saved_warps; }},
    {"darsie", "DARSIE: fewer warp instructions, 2D geomean (Fig. 10)", "17",
     [](const Files& files) { return average_of(files, Technique::darsie, true).saved_warps; }},
    {"r2d2", "WP: fewer thread instructions, average (Fig. 4)", "27",
     [](const Files& files) { return average_of(files, Technique::within_warps, {}).saved_threads; }},
    {"r2d2", "TB: fewer thread instructions, average (Fig. 4)", "22",
     [](const Files& files) { return average_of(files, Technique::within_blocks, {}).saved_threads; }},
    {"r2d2", "LN: fewer thread instructions, average (Fig. 4)", "33",
     [](const Files& files) { return average_of(files, Technique::linear, {}).saved_threads; }},
    {"r2d2", "DAC: fewer warp instructions, average (Fig. 12)", "20",
     [](const Files& files) { return average_of(files, Technique::dac_ideal, {}).saved_warps; }},
    {"r2d2", "DARSIE: fewer warp instructions, average (Fig. 12)", "18",
     [](const Files& files) { return average_of(files, Technique::darsie, {}).saved_warps; }},
    {"r2d2", "DARSIE+Scalar: fewer warp instructions, average (Fig. 12)", "19",
     [](const Files& files) { return average_of(files, Technique::darsie_scalar, {}).saved_warps; }},
    {"composite", "fewer instructions fetched by composites (6.2: energy of fetch, decode, schedule)", "17",
     [](const Files& files) { return average_of(files, Technique::composite, {}).saved_warps; }},
    {"composite", "redundant instructions, average (Fig. 1)", "10 .. 50",
     [](const Files& files) { return datapath_mean(files, redundant_share); }},
    {"composite", "stalls by 16-bit results that are wider (5.2)", "0.1",
     [](const Files& files) { return datapath_mean(files, stall_share); }},
    {"composite", "energy of register files saved, without composites (6.2: all three)", "50",
     [](const Files& files) { return datapath_mean(files, register_energy_saved); }},
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
  double log_warps = 0, log_threads = 0;
  for (const StudiedFile& file : files) {
    if (file.result.baseline.warps == 0 || !file.result.row(technique).present) continue;
    if (multi_dimensional && file.result.is_multi_dimensional() != *multi_dimensional) continue;
    const Shares shares = shares_of(file.result, technique);
    ++average.files;
    average.redundant += shares.redundant;
    log_warps += std::log(std::max(1 - shares.saved_warps, 1e-9));
    log_threads += std::log(std::max(1 - shares.saved_threads, 1e-9));
  }
  if (average.files == 0) return average;
  const auto count = static_cast<double>(average.files);
  average.redundant /= count;
  average.saved_warps = 1 - std::exp(log_warps / count);
  average.saved_threads = 1 - std::exp(log_threads / count);
  return average;
}

std::span<const PaperFigure> paper_figures() {
  return figures;
}

} // namespace ptxrewrite::cli
