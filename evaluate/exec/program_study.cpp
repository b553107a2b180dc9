#include "evaluate/exec/program_study.h"

#include "evaluate/exec/rewriting.h"
#include "evaluate/study/study_averages.h"
#include "support/text/html_text.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;

std::vector<Technique> techniques_of(const KernelStudy& total) {
  std::vector<Technique> found;
  for (size_t i = 0; total.study && i < technique_count; ++i)
    if (left_of(*total.study, static_cast<Technique>(i))) found.push_back(static_cast<Technique>(i));
  return found;
}

// The kernels in order of decreasing time, followed by their sum.
std::vector<KernelStudy> rows_of(const ProgramStudy& study, const KernelStudy& total) {
  std::vector<KernelStudy> rows = study.kernels;
  std::ranges::stable_sort(rows, [&](const KernelStudy& a, const KernelStudy& b) {
    return study.time_share(a, total) > study.time_share(b, total);
  });
  rows.push_back(total);
  return rows;
}

double speed_up(const KernelStudy& kernel, const VersionSums& version) {
  return version.clocks > 0 ? kernel.scores.front().clocks / version.clocks : 0;
}

std::string reasons_text(const ProgramStudy& study) {
  std::string text;
  for (const KernelStudy& kernel : study.kernels)
    for (const auto& [reason, launches] : kernel.reasons)
      text += fmt::format("{}: {} of {} launches left out: {}\n", kernel.kernel, launches, kernel.launches,
                          beginning(reason));
  return text;
}

std::string scores_text(const ProgramStudy& study, const std::vector<KernelStudy>& rows, const KernelStudy& total) {
  TextTable table{{{"kernel"},
                   {"version"},
                   {"launches", true},
                   {"warp instructions", true},
                   {"clocks", true},
                   {"us", true},
                   {"time %", true},
                   {"speed-up", true}},
                  {}};
  for (const KernelStudy& kernel : rows)
    for (const VersionSums& version : kernel.scores) {
      const bool is_first = &version == &kernel.scores.front();
      table.rows.push_back({shortened(kernel.kernel, longest_name), version.version, std::to_string(version.launches),
                            fmt::format("{:.0f}", version.instructions), fmt::format("{:.0f}", version.clocks),
                            fmt::format("{:.2f}", version.seconds * 1e6),
                            is_first ? percent(study.time_share(kernel, total)) : "",
                            is_first ? "" : fmt::format("{:.3f}", speed_up(kernel, version))});
    }
  return table.text();
}

} // namespace

void VersionSums::add(const ScoredKernel& kernel) {
  launches += kernel.launches;
  rewritten_launches += kernel.rewritten_launches;
  clocks += kernel.clocks;
  seconds += kernel.seconds;
  instructions += kernel.instructions;
}

KernelStudy ProgramStudy::total() const {
  KernelStudy sum;
  sum.kernel = "all";
  for (const KernelStudy& kernel : kernels) {
    sum.launches += kernel.launches;
    sum.studied += kernel.studied;
    sum.warp_instructions += kernel.warp_instructions;
    sum.thread_instructions += kernel.thread_instructions;
    if (kernel.study) {
      if (!sum.study) sum.study.emplace();
      *sum.study += *kernel.study;
    }
    for (size_t i = 0; i < kernel.scores.size(); ++i) {
      if (i == sum.scores.size()) sum.scores.push_back({.version = kernel.scores[i].version});
      VersionSums& version = sum.scores[i];
      version.launches += kernel.scores[i].launches;
      version.rewritten_launches += kernel.scores[i].rewritten_launches;
      version.clocks += kernel.scores[i].clocks;
      version.seconds += kernel.scores[i].seconds;
      version.instructions += kernel.scores[i].instructions;
    }
  }
  return sum;
}

double ProgramStudy::time_share(const KernelStudy& kernel, const KernelStudy& total) const {
  if (score_machine) {
    if (total.scores.empty() || kernel.scores.empty() || total.scores.front().clocks <= 0) return 0;
    return kernel.scores.front().clocks / total.scores.front().clocks;
  }
  return ratio(kernel.warp_instructions, total.warp_instructions);
}

std::optional<double> left_of(const StudyResult& result, Technique technique) {
  const StudyRow& row = result.row(technique);
  if (!row.present || result.baseline.warps == 0) return std::nullopt;
  return row.counts_warps ? ratio(row.left.warps, result.baseline.warps) : ratio(row.left.lanes, result.baseline.lanes);
}

std::string program_study_text(const ProgramStudy& study) {
  const KernelStudy total = study.total();
  const std::vector<KernelStudy> rows = rows_of(study, total);
  const std::vector<Technique> techniques = techniques_of(total);
  std::string out;
  if (total.study) {
    TextTable table{{{"kernel"}, {"launches", true}, {"warp instructions", true}, {"time %", true}}, {}};
    for (const Technique technique : techniques)
      table.columns.push_back({std::string(info_of(technique).name), true});
    for (const KernelStudy& kernel : rows) {
      std::vector<std::string> row{shortened(kernel.kernel, longest_name), std::to_string(kernel.launches),
                                   std::to_string(kernel.study ? kernel.study->baseline.warps : 0),
                                   percent(study.time_share(kernel, total))};
      for (const Technique technique : techniques)
        row.push_back(percent(kernel.study ? left_of(*kernel.study, technique) : std::nullopt));
      table.rows.push_back(std::move(row));
    }
    out += fmt::format("machine instructions of {}, and per cent of them that techniques leave (LN: of the threads')\n",
                       study.machine->name) +
           table.text();
  }
  if (!total.scores.empty())
    out += fmt::format("{}estimated on {}\n", out.empty() ? "" : "\n", study.score_machine->name) +
           scores_text(study, rows, total);
  return out + reasons_text(study);
}

json program_study_json(const ProgramStudy& study) {
  const KernelStudy total = study.total();
  json kernels = json::array();
  for (const KernelStudy& kernel : rows_of(study, total)) {
    json one = {{"kernel", kernel.kernel},
                {"launches", kernel.launches},
                {"studied_launches", kernel.studied},
                {"ptx_warp_instructions", kernel.warp_instructions},
                {"ptx_thread_instructions", kernel.thread_instructions},
                {"time_share", study.time_share(kernel, total)}};
    if (kernel.study) {
      one["warp_instructions"] = kernel.study->baseline.warps;
      one["thread_instructions"] = kernel.study->baseline.lanes;
      json left = json::object();
      for (const Technique technique : techniques_of(total))
        if (const std::optional<double> share = left_of(*kernel.study, technique))
          left[std::string(info_of(technique).name)] = *share;
      one["left"] = std::move(left);
    }
    for (const VersionSums& version : kernel.scores)
      one["versions"].push_back({{"version", version.version},
                                 {"launches", version.launches},
                                 {"rewritten_launches", version.rewritten_launches},
                                 {"warp_instructions", version.instructions},
                                 {"clocks", version.clocks},
                                 {"seconds", version.seconds},
                                 {"speedup", speed_up(kernel, version)}});
    for (const auto& [reason, launches] : kernel.reasons)
      one["left_out"].push_back({{"reason", reason}, {"launches", launches}});
    kernels.push_back(std::move(one));
  }
  json document = {{"machine", study.machine->name}};
  if (study.score_machine) document["scored_on"] = study.score_machine->name;
  document["all"] = std::move(kernels.back());
  kernels.erase(kernels.size() - 1);
  document["kernels"] = std::move(kernels);
  return document;
}

namespace {

constexpr const char* page_head = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>ptxrewrite exec</title>
<style>
body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222;background:#fff}
table{border-collapse:collapse}td,th{padding:.15em .6em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left;font-family:monospace;max-width:32em;overflow-wrap:anywhere}
tr:last-child{font-weight:600}
</style></head><body>
<h1>Kernels of a program</h1>
)";

// A cell that is greener if less is left.
std::string left_cell(std::optional<double> share) {
  if (!share) return "<td></td>";
  return fmt::format("<td style=\"background:hsla(140,60%,50%,{:.2f})\">{:.1f}</td>",
                     0.7 * std::clamp(1 - *share, 0.0, 1.0), 100 * *share);
}

} // namespace

std::string program_study_html(const ProgramStudy& study) {
  const KernelStudy total = study.total();
  const std::vector<Technique> techniques = techniques_of(total);
  const std::vector<VersionSums>& versions = total.scores;
  std::string out = page_head;
  if (total.study)
    out +=
        fmt::format("<p>Warp instructions are machine instructions of {}; techniques: per cent of them that are left "
                    "(LN: of the threads' instructions).</p>\n",
                    escaped(study.machine->name));
  if (study.score_machine)
    out += fmt::format("<p>Times are estimates of an interval model for {}, no measurements.</p>\n",
                       escaped(study.score_machine->name));
  out += "<table><tr><th>kernel</th><th>launches</th><th>warp instructions</th><th>time&nbsp;%</th>";
  for (const VersionSums& version : versions)
    out += fmt::format("<th>{}: &micro;s</th>", escaped(version.version));
  for (const Technique technique : techniques)
    out += fmt::format("<th title=\"{}\">{}</th>", escaped(info_of(technique).what), escaped(info_of(technique).name));
  out += "</tr>\n";
  for (const KernelStudy& kernel : rows_of(study, total)) {
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td>", escaped(kernel.kernel), kernel.launches,
                       kernel.study ? kernel.study->baseline.warps : kernel.warp_instructions,
                       percent(study.time_share(kernel, total)));
    for (size_t i = 0; i < versions.size(); ++i)
      out += i < kernel.scores.size()
                 ? fmt::format("<td>{:.2f}{}</td>", kernel.scores[i].seconds * 1e6,
                               i ? fmt::format(" ({:.3f}x)", speed_up(kernel, kernel.scores[i])) : "")
                 : "<td></td>";
    for (const Technique technique : techniques)
      out += left_cell(kernel.study ? left_of(*kernel.study, technique) : std::nullopt);
    out += "</tr>\n";
  }
  return out + "</table></body></html>\n";
}

} // namespace ptxrewrite::evaluate
