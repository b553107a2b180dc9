#include "cli/study_report.h"

#include "cli/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace ptxrewrite::cli {
namespace {

using json = nlohmann::ordered_json;

double ratio(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

struct Shares {
  double redundant = 0; // what is found, of all: warp instructions, or threads where only they count
  double saved_warps = 0, saved_threads = 0;
};
Shares shares_of(const StudyResult& result, Technique technique) {
  const StudyRow& row = result.row(technique);
  const emulator::WorkCount& all = result.baseline;
  Shares shares;
  shares.redundant = row.counts_warps ? ratio(row.redundant.warps, all.warps) : ratio(row.redundant.lanes, all.lanes);
  shares.saved_warps = all.warps ? 1 - ratio(row.left.warps, all.warps) : 0;
  shares.saved_threads = all.lanes ? 1 - ratio(row.left.lanes, all.lanes) : 0;
  return shares;
}

std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}
double rounded(double share) {
  return std::round(share * 1e6) / 1e6;
}

std::vector<Technique> shown(const StudyReportOptions& options) {
  if (!options.only.empty()) return options.only;
  std::vector<Technique> all;
  for (size_t i = 0; i < technique_count; ++i)
    all.push_back(static_cast<Technique>(i));
  return all;
}

// Over files, all of the same weight.
struct Average {
  size_t files = 0;
  double redundant = 0;                      // mean of the shares
  double saved_warps = 0, saved_threads = 0; // 1 - geometric mean of what is left
};

// `multi_dimensional`: only files with such blocks, or only the others; nothing: all files.
Average average_of(const std::vector<StudiedFile>& files, Technique technique, std::optional<bool> multi_dimensional) {
  Average average;
  double log_warps = 0, log_threads = 0;
  for (const StudiedFile& file : files) {
    if (file.result.baseline.warps == 0) continue;
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

struct FileGroup {
  std::string_view name;
  std::optional<bool> multi_dimensional;
};
constexpr FileGroup groups[] = {{"all", {}}, {"1D", false}, {"2D, 3D", true}};

// A figure that a paper reports about its benchmarks, and how ours is made.
struct PaperFigure {
  std::string_view paper;
  std::string_view what;
  Technique technique;
  double Average::*figure;
  std::optional<bool> multi_dimensional;
  double reported; // per cent
};
constexpr PaperFigure paper_figures[] = {
    {"darsie", "redundant in the block, average (Fig. 1)", Technique::block, &Average::redundant, {}, 33},
    {"darsie", "DAC-IDEAL: fewer warp instructions, 2D geomean (Fig. 10)", Technique::dac_ideal, &Average::saved_warps,
     true, 11},
    {"r2d2",
     "WP: fewer thread instructions, average (Fig. 4)",
     Technique::within_warps,
     &Average::saved_threads,
     {},
     27},
    {"r2d2",
     "TB: fewer thread instructions, average (Fig. 4)",
     Technique::within_blocks,
     &Average::saved_threads,
     {},
     22},
    {"r2d2", "LN: fewer thread instructions, average (Fig. 4)", Technique::linear, &Average::saved_threads, {}, 33},
    {"r2d2", "DAC: fewer warp instructions, average (Fig. 12)", Technique::dac_ideal, &Average::saved_warps, {}, 20},
};

std::string cost_text(const StudyResult& result) {
  return fmt::format("cost of the study: {:.3f} s, {:.3f} s without: {:.1f} times\n", result.seconds,
                     result.plain_seconds, result.plain_seconds > 0 ? result.seconds / result.plain_seconds : 0.0);
}

} // namespace

std::string study_text(const StudiedFile& file, const ir::Machine& machine, const StudyReportOptions& options) {
  Table table{{{"technique", false},
               {"warp instructions", true},
               {"thread instructions", true},
               {"redundant %", true},
               {"fewer warps %", true},
               {"fewer threads %", true},
               {"what", false}},
              {}};
  table.rows.push_back(
      {"baseline", fmt::format("{}", file.result.baseline.warps), fmt::format("{}", file.result.baseline.lanes)});
  for (Technique technique : shown(options)) {
    const StudyRow& row = file.result.row(technique);
    const Shares shares = shares_of(file.result, technique);
    const TechniqueInfo& info = info_of(technique);
    table.rows.push_back({std::string(info.name), row.counts_warps ? fmt::format("{}", row.left.warps) : "-",
                          fmt::format("{}", row.left.lanes), percent(shares.redundant),
                          row.counts_warps ? percent(shares.saved_warps) : "-", percent(shares.saved_threads),
                          fmt::format("{} ({})", info.what, info.source)});
  }
  std::string out = fmt::format("{}{}: machine instructions of {}\n", file.file,
                                file.size.empty() ? "" : " (" + file.size + ")", machine.name);
  out += table.text();
  if (file.result.forgotten_instances)
    out += fmt::format("{} executions came too late to be compared with other warps: they count as not redundant\n",
                       file.result.forgotten_instances);
  if (options.cost) out += cost_text(file.result);
  return out;
}

json study_json(const StudiedFile& file, const ir::Machine& machine, const StudyReportOptions& options) {
  json rows = json::array();
  for (Technique technique : shown(options)) {
    const StudyRow& row = file.result.row(technique);
    const Shares shares = shares_of(file.result, technique);
    json one = {{"technique", info_of(technique).name}};
    if (row.counts_warps) one["warp_instructions"] = row.left.warps;
    one["thread_instructions"] = row.left.lanes;
    one["redundant"] = rounded(shares.redundant);
    if (row.counts_warps) one["fewer_warp_instructions"] = rounded(shares.saved_warps);
    one["fewer_thread_instructions"] = rounded(shares.saved_threads);
    rows.push_back(std::move(one));
  }
  json document = {
      {"file", file.file},
      {"size", file.size},
      {"gpu", machine.name},
      {"multi_dimensional", file.result.is_multi_dimensional()},
      {"baseline",
       {{"warp_instructions", file.result.baseline.warps}, {"thread_instructions", file.result.baseline.lanes}}},
      {"rows", std::move(rows)},
      {"forgotten_instances", file.result.forgotten_instances}};
  if (options.cost) document["cost"] = {{"seconds", file.result.seconds}, {"plain_seconds", file.result.plain_seconds}};
  return document;
}

std::string averages_text(const std::vector<StudiedFile>& files, const StudyReportOptions& options) {
  std::string out;
  for (const FileGroup& group : groups) {
    const size_t count = average_of(files, Technique::block, group.multi_dimensional).files;
    if (count == 0) continue;
    Table table{{{"technique", false}, {"redundant %", true}, {"fewer warps %", true}, {"fewer threads %", true}}, {}};
    for (Technique technique : shown(options)) {
      const Average average = average_of(files, technique, group.multi_dimensional);
      const bool warps = files.front().result.row(technique).counts_warps;
      table.rows.push_back({std::string(info_of(technique).name), percent(average.redundant),
                            warps ? percent(average.saved_warps) : "-", percent(average.saved_threads)});
    }
    out += fmt::format("{}{} file{}{}: mean of what is redundant, geometric means of what is left\n",
                       out.empty() ? "" : "\n", count, count == 1 ? "" : "s",
                       group.multi_dimensional ? fmt::format(" with {} blocks", group.name) : "");
    out += table.text();
  }
  if (options.cost) {
    StudyResult sum;
    for (const StudiedFile& file : files)
      sum += file.result;
    out += '\n' + cost_text(sum);
  }
  if (options.paper.empty()) return out;
  Table table{{{"reported by " + options.paper, false}, {"paper %", true}, {"ours %", true}}, {}};
  for (const PaperFigure& figure : paper_figures)
    if (figure.paper == options.paper)
      table.rows.push_back({std::string(figure.what), fmt::format("{:.0f}", figure.reported),
                            percent(average_of(files, figure.technique, figure.multi_dimensional).*figure.figure)});
  return out + '\n' + table.text();
}

json averages_json(const std::vector<StudiedFile>& files, const StudyReportOptions& options) {
  json document = json::object();
  for (const FileGroup& group : groups) {
    json rows = json::array();
    size_t count = 0;
    for (Technique technique : shown(options)) {
      const Average average = average_of(files, technique, group.multi_dimensional);
      count = average.files;
      rows.push_back({{"technique", info_of(technique).name},
                      {"redundant", rounded(average.redundant)},
                      {"fewer_warp_instructions", rounded(average.saved_warps)},
                      {"fewer_thread_instructions", rounded(average.saved_threads)}});
    }
    if (count) document[std::string(group.name)] = {{"files", count}, {"rows", std::move(rows)}};
  }
  if (options.paper.empty()) return document;
  json figures = json::array();
  for (const PaperFigure& figure : paper_figures)
    if (figure.paper == options.paper)
      figures.push_back(
          {{"figure", figure.what},
           {"reported", figure.reported / 100},
           {"ours", rounded(average_of(files, figure.technique, figure.multi_dimensional).*figure.figure)}});
  document["paper"] = {{"name", options.paper}, {"figures", std::move(figures)}};
  return document;
}

std::string study_notes() {
  return "Left out, because they need the timing model: CAE, MTA (dac), RFV, RFH (regless).\n";
}

const std::vector<std::string>& papers_of_study() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const PaperFigure& figure : paper_figures)
      if (std::ranges::find(found, figure.paper) == found.end()) found.emplace_back(figure.paper);
    return found;
  }();
  return names;
}

} // namespace ptxrewrite::cli
