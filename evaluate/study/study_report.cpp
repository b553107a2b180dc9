#include "evaluate/study/study_report.h"

#include "evaluate/study/study_datapath.h"
#include "evaluate/study/study_marks.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;

double rounded(double share) {
  return std::round(share * 1e6) / 1e6;
}

json ours_of(const PaperFigure& figure, const std::vector<StudiedFile>& files) {
  const std::optional<double> ours = figure.ours(files);
  return ours ? json(rounded(*ours)) : json(nullptr);
}

std::vector<Technique> shown(const StudyReportOptions& options) {
  if (!options.only.empty()) return options.only;
  std::vector<Technique> all;
  for (size_t i = 0; i < technique_count; ++i)
    all.push_back(static_cast<Technique>(i));
  return all;
}

struct FileGroup {
  std::string_view name;
  std::optional<bool> multi_dimensional;
};
constexpr FileGroup groups[] = {{"all", {}}, {"1D", false}, {"2D, 3D", true}};

bool shows_datapath(const StudyReportOptions& options) {
  auto is_datapath = [](Technique technique) {
    return technique >= Technique::scalar && technique <= Technique::composite;
  };
  return options.only.empty() || std::ranges::any_of(options.only, is_datapath);
}

bool shows_marks(const StudyReportOptions& options) {
  auto is_about_marks = [](Technique technique) {
    return technique == Technique::block || technique == Technique::darsie;
  };
  return options.only.empty() || std::ranges::any_of(options.only, is_about_marks);
}

std::string cost_text(const StudyResult& result) {
  std::string text =
      fmt::format("cost of the study: {:.3f} s, {:.3f} s without: {:.1f} times\n", result.seconds, result.plain_seconds,
                  result.plain_seconds > 0 ? result.seconds / result.plain_seconds : 0.0);
  if (result.machine_seconds > 0)
    text += fmt::format("runs on machines of their own: {:.3f} s\n", result.machine_seconds);
  return text;
}

// Figs. 9, 10 and 12 of darsie-asplos20, in PTX instructions by warps.
std::string darsie_text(const emulator::SkipCounters& skips) {
  const uint64_t all = skips.executed + skips.all_skipped();
  auto share = [&](uint64_t count) { return fmt::format("{:.1f}", 100 * ratio(count, all)); };
  TextTable table{{{"DARSIE's machine", false}, {"PTX warp instructions", true}, {"%", true}}, {}};
  auto add = [&](std::string name, uint64_t count) {
    table.rows.push_back({std::move(name), fmt::format("{}", count), share(count)});
  };
  add("skipped, uniform", skips.skipped[0]);
  add("skipped, affine", skips.skipped[1]);
  add("skipped, unstructured", skips.skipped[2]);
  add("of them loads", skips.skipped_loads);
  add("executed for the block", skips.led);
  add("marked, executed by each warp", skips.off_path + skips.no_entry + skips.no_register + skips.alone);
  return table.text() + fmt::format("{} synchronisations at branches, {} waits of warps in them\n", skips.branch_syncs,
                                    skips.branch_waits);
}

} // namespace

std::string study_text(const StudiedFile& file, const ir::Machine& machine, const StudyReportOptions& options) {
  TextTable table{{{"technique", false},
                   {"warp instructions", true},
                   {"thread instructions", true},
                   {"redundant %", true},
                   {"fewer warps %", true},
                   {"fewer threads %", true},
                   {"rule", false}},
                  {}};
  table.rows.push_back(
      {"baseline", fmt::format("{}", file.result.baseline.warps), fmt::format("{}", file.result.baseline.lanes)});
  for (Technique technique : shown(options)) {
    const StudyRow& row = file.result.row(technique);
    if (!row.present) continue;
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
  if (shows_datapath(options)) out += '\n' + datapath_text(file.result.datapath, file.result.composites);
  if (shows_marks(options)) out += '\n' + marks_text(file.result.marks, file.result.baseline.warps);
  if (file.result.row(Technique::darsie).present) out += '\n' + darsie_text(file.result.darsie);
  if (file.result.looked_at < file.result.executions)
    out += fmt::format(
        "looked at the values of {:.1f} % of the warp instructions, in {} of {} blocks; --sample 1 looks "
        "at all\n",
        100 * ratio(file.result.looked_at, file.result.executions), file.result.blocks_looked_at, file.result.blocks);
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
    if (!row.present) continue;
    const Shares shares = shares_of(file.result, technique);
    json one = {{"technique", info_of(technique).name}};
    if (row.counts_warps) one["warp_instructions"] = row.left.warps;
    one["thread_instructions"] = row.left.lanes;
    one["redundant"] = rounded(shares.redundant);
    if (row.counts_warps) one["fewer_warp_instructions"] = rounded(shares.saved_warps);
    one["fewer_thread_instructions"] = rounded(shares.saved_threads);
    rows.push_back(std::move(one));
  }
  json document = {{"file", file.file},
                   {"size", file.size},
                   {"gpu", machine.name},
                   {"multi_dimensional", file.result.is_multi_dimensional()},
                   {"baseline",
                    {{"warp_instructions", file.result.baseline.warps},
                     {"thread_instructions", file.result.baseline.lanes},
                     {"ptx_warp_instructions", file.result.executions},
                     {"ptx_thread_instructions", file.result.thread_executions}}},
                   {"blocks", file.result.blocks},
                   {"blocks_looked_at", file.result.blocks_looked_at},
                   {"looked_at", rounded(ratio(file.result.looked_at, file.result.executions))},
                   {"rows", std::move(rows)},
                   {"forgotten_instances", file.result.forgotten_instances}};
  if (shows_marks(options)) document["marks"] = marks_json(file.result.marks, file.result.baseline.warps);
  if (options.cost) document["cost"] = {{"seconds", file.result.seconds}, {"plain_seconds", file.result.plain_seconds}};
  return document;
}

std::string averages_text(const std::vector<StudiedFile>& files, const StudyReportOptions& options) {
  std::string out;
  for (const FileGroup& group : groups) {
    const size_t count = average_of(files, Technique::block, group.multi_dimensional).files;
    if (count == 0) continue;
    TextTable table{{{"technique", false}, {"redundant %", true}, {"fewer warps %", true}, {"fewer threads %", true}},
                    {}};
    for (Technique technique : shown(options)) {
      if (!files.front().result.row(technique).present) continue;
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
  StudyResult sum;
  for (const StudiedFile& file : files)
    sum += file.result;
  if (shows_marks(options)) out += "\nall executions together:\n" + marks_text(sum.marks, sum.baseline.warps);
  if (options.cost) out += '\n' + cost_text(sum);
  if (options.paper.empty()) return out;
  TextTable table{{{"reported by " + options.paper, false}, {"paper %", true}, {"ours %", true}}, {}};
  for (const PaperFigure& figure : paper_figures())
    if (figure.paper == options.paper)
      table.rows.push_back({std::string(figure.what), std::string(figure.reported), percent(figure.ours(files))});
  return out + '\n' + table.text();
}

json averages_json(const std::vector<StudiedFile>& files, const StudyReportOptions& options) {
  json document = json::object();
  for (const FileGroup& group : groups) {
    json rows = json::array();
    size_t count = 0;
    for (Technique technique : shown(options)) {
      if (!files.front().result.row(technique).present) continue;
      const Average average = average_of(files, technique, group.multi_dimensional);
      count = average.files;
      json row = {{"technique", info_of(technique).name}, {"redundant", rounded(average.redundant)}};
      if (files.front().result.row(technique).counts_warps)
        row["fewer_warp_instructions"] = rounded(average.saved_warps);
      row["fewer_thread_instructions"] = rounded(average.saved_threads);
      rows.push_back(std::move(row));
    }
    if (count) document[std::string(group.name)] = {{"files", count}, {"rows", std::move(rows)}};
  }
  StudyResult sum;
  for (const StudiedFile& file : files)
    sum += file.result;
  if (shows_marks(options)) document["marks"] = marks_json(sum.marks, sum.baseline.warps);
  if (options.paper.empty()) return document;
  json figures = json::array();
  for (const PaperFigure& figure : paper_figures())
    if (figure.paper == options.paper)
      figures.push_back(
          {{"figure", figure.what}, {"reported_percent", figure.reported}, {"ours", ours_of(figure, files)}});
  document["paper"] = {{"name", options.paper}, {"figures", std::move(figures)}};
  return document;
}

std::string study_notes() {
  return "Left out, because they need the timing model (score): CAE, MTA (dac), RFV, RFH (regless).\n";
}

const std::vector<std::string>& papers_of_study() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const PaperFigure& figure : paper_figures())
      if (std::ranges::find(found, figure.paper) == found.end()) found.emplace_back(figure.paper);
    return found;
  }();
  return names;
}

} // namespace ptxrewrite::evaluate
