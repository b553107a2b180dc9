#include "evaluate/score/score_html.h"

#include "evaluate/score/score_energy.h"
#include "evaluate/score/score_report.h"
#include "evaluate/score/score_roofline.h"
#include "support/text/bar_chart.h"
#include "support/text/html_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ptxrewrite::evaluate {
namespace {

using timing::Cause;
using timing::cause_count;

// Blues and greens for resources, warm colours for waits, greys for the rest.
std::string colour_of(Cause cause) {
  const auto number = static_cast<double>(cause);
  if (cause <= Cause::dram_bandwidth) return fmt::format("hsl({:.0f},55%,{:.0f}%)", 150 + number * 10, 40 + number * 3);
  if (cause <= Cause::wait_staged)
    return fmt::format("hsl({:.0f},75%,60%)", (number - static_cast<double>(Cause::wait_integer)) * 7);
  return fmt::format("hsl(0,0%,{:.0f}%)", 35 + (number - static_cast<double>(Cause::linear)) * 6);
}

// " (-12.3 %)"; empty for the baseline itself.
std::string change(bool is_baseline, double now, double before) {
  return is_baseline || before <= 0 ? std::string() : fmt::format(" ({:+.1f} %)", 100 * (now / before - 1));
}

// A kernel in one of the versions that have it.
struct VersionOfKernel {
  const ScoredKernel& scored;
  size_t number = 0;
  const std::string& name;
};

std::vector<VersionOfKernel> versions_of(const ScoredFile& file, const ScoredKernel& kernel) {
  std::vector<VersionOfKernel> out;
  const std::vector<const ScoredKernel*> versions = in_versions(file, kernel.kernel);
  for (size_t i = 0; i < versions.size(); ++i)
    if (versions[i]) out.push_back({*versions[i], i, file.versions[i].name});
  return out;
}

std::string instructions_chart(std::span<const VersionOfKernel> versions) {
  const double before = versions.front().scored.instructions;
  std::vector<Bar> bars;
  for (const auto& [scored, number, name] : versions)
    bars.push_back({name,
                    {{"machine instructions", version_colour(number), scored.instructions}},
                    fmt::format("{:.5g}", scored.instructions) + change(number == 0, scored.instructions, before)});
  return "<h4>machine instructions by warps</h4>\n" + bar_chart(bars);
}

std::string clocks_chart(const ScoredFile& file, std::span<const VersionOfKernel> versions) {
  const double before = versions.front().scored.clocks;
  std::vector<Bar> bars;
  for (const auto& [scored, number, name] : versions) {
    Bar bar{name, {}, {}};
    for (size_t cause = 0; cause < cause_count; ++cause)
      if (scored.stack[cause] > 0.002 * scored.clocks)
        bar.parts.push_back({std::string(timing::spelling(static_cast<Cause>(cause))),
                             colour_of(static_cast<Cause>(cause)), scored.stack[cause]});
    const double slots = file.machine->sms * file.machine->schedulers * scored.clocks;
    bar.text = fmt::format("{:.5g}{}, {:.2f} us, CPI {:.2f}", scored.clocks, change(number == 0, scored.clocks, before),
                           scored.seconds * 1e6, scored.instructions > 0 ? slots / scored.instructions : 0);
    bars.push_back(std::move(bar));
  }
  return "<h4>clocks by cause (CPI stack)</h4>\n" + bar_chart(bars) + legend(bars);
}

// Sets of coefficients are never mixed: each has its own bars, relative to its own baseline.
std::string energy_chart(std::span<const VersionOfKernel> versions) {
  std::string out;
  std::vector<Bar> bars;
  for (const ir::EnergySet& set : ir::energy_sets()) {
    bars.clear();
    double before = 0;
    for (const auto& [scored, number, name] : versions) {
      const timing::Energy energy = timing::energy(set, scored.events, scored.powered_seconds);
      if (number == 0) before = energy.all();
      bars.push_back({name,
                      {{"front end", colour_of(Cause::issue), energy.front_end},
                       {"registers", colour_of(Cause::unit_fp64), energy.registers},
                       {"units", colour_of(Cause::unit_special), energy.units},
                       {"memory", colour_of(Cause::wait_l2), energy.memory},
                       {"static", colour_of(Cause::launch), energy.constant}},
                      fmt::format("{:.4g} uJ", energy.all() * 1e6) + change(number == 0, energy.all(), before)});
    }
    out += fmt::format("<h4>energy, {} ({})</h4>\n", escaped(set.name), escaped(set.about)) + bar_chart(bars);
  }
  return out + legend(bars);
}

std::string section_name(size_t file, size_t kernel) {
  return fmt::format("kernel-{}-{}", file, kernel);
}

std::string kernel_section(const ScoredFile& file, const ScoredKernel& kernel, const std::string& name, bool open) {
  const std::vector<VersionOfKernel> versions = versions_of(file, kernel);
  const launch::Dim3 grid = kernel.grid, block = kernel.block;
  std::string out = fmt::format(
      "<details id=\"{}\"{}><summary><h3>{}</h3> {} x {} x {} blocks of {} x {} x {} threads{}, {} "
      "registers, {:.2f} us</summary>\n",
      name, open ? " open=\"open\"" : "", escaped(kernel.kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
      kernel.launches > 1 ? fmt::format(", {} launches", kernel.launches) : "", kernel.registers, kernel.seconds * 1e6);
  out += instructions_chart(versions) + clocks_chart(file, versions) + energy_chart(versions);
  for (const auto& [scored, number, version] : versions) {
    if (number == 0) continue;
    out += fmt::format("<p>Energy of {} against baseline: {}.</p>\n", escaped(version),
                       spelling(energy_sign(kernel, scored)));
    if (const std::string& remark = file.versions[number].remark; !remark.empty())
      out += fmt::format("<p>{}: {}</p>\n", escaped(version), escaped(remark));
  }
  return out + "</details>\n";
}

// Speed-ups above 1 in green and below 1 in red, darker if further from 1, up to a factor of 1.5.
std::string speed_up_cell(double speed_up) {
  const double depth = std::min(std::abs(std::log(speed_up)) / std::log(1.5), 1.0);
  return fmt::format("<td style=\"background:hsla({},60%,50%,{:.2f})\">{:.3f}</td>", speed_up >= 1 ? 140 : 10,
                     depth * 0.6, speed_up);
}

// A table by kernel and version, with links to the kernels' sections and geometric means at the bottom.
std::string overview(std::span<const ScoredFile> files, const ir::Machine& machine) {
  const ScoredFile& first = *std::ranges::find(files, &machine, &ScoredFile::machine);
  const size_t count = first.versions.size();
  if (count < 2) return {};
  std::string out = "<div class=\"scroll\"><table><tr><th>speed-up</th>";
  for (size_t version = 1; version < count; ++version)
    out += fmt::format("<th>{}</th>", escaped(first.versions[version].name));
  out += "</tr>\n";
  std::vector<double> logarithms(count);
  std::vector<size_t> kernels(count);
  for (size_t at = 0; at < files.size(); ++at) {
    const ScoredFile& file = files[at];
    if (file.machine != &machine) continue;
    const std::vector<ScoredKernel>& baseline = file.versions.front().kernels;
    for (size_t i = 0; i < baseline.size(); ++i) {
      out += fmt::format("<tr><td><a href=\"#{}\">{} {}</a></td>", section_name(at, i), escaped(file.file),
                         escaped(baseline[i].kernel));
      const std::vector<const ScoredKernel*> versions = in_versions(file, baseline[i].kernel);
      for (size_t version = 1; version < count; ++version) {
        const ScoredKernel* scored = version < versions.size() ? versions[version] : nullptr;
        if (!scored || scored->clocks <= 0 || baseline[i].clocks <= 0) {
          out += "<td></td>";
          continue;
        }
        const double speed_up = baseline[i].clocks / scored->clocks;
        out += speed_up_cell(speed_up);
        logarithms[version] += std::log(speed_up);
        ++kernels[version];
      }
      out += "</tr>\n";
    }
  }
  out += "<tr><th>geometric mean</th>";
  for (size_t version = 1; version < count; ++version)
    out += kernels[version] ? speed_up_cell(std::exp(logarithms[version] / static_cast<double>(kernels[version])))
                            : "<td></td>";
  return out + "</tr></table></div>\n";
}

constexpr const char* head = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>ptxrewrite score</title>
<style>
:root{color-scheme:light dark;--ink:#222;--page:#fff;--link:#0550ae}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--page:#0d1117;--link:#79b8ff}}
body{font:14px/1.4 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:var(--ink);
background:var(--page);overflow-wrap:anywhere}a{color:var(--link)}
svg{max-width:100%;height:auto}.scroll{overflow-x:auto}svg text{font-family:system-ui,sans-serif}
h3{display:inline}h4{margin:.8em 0 .2em;font-weight:600}summary{margin:.6em 0;cursor:pointer}
table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:right}td:first-child,th:first-child{text-align:left}
.legend span{margin-right:1em;white-space:nowrap}.legend i{display:inline-block;width:.9em;height:.9em;margin-right:.3em}
</style></head><body>
<h1>Scores</h1>
<p>Estimates of an interval model, not measurements; energy by sets of coefficients that are never mixed.</p>
)";

} // namespace

std::string score_html(std::span<const ScoredFile> files) {
  std::string out = head;
  std::vector<const ir::Machine*> machines;
  size_t kernels = 0;
  for (const ScoredFile& file : files) {
    if (std::ranges::find(machines, file.machine) == machines.end()) machines.push_back(file.machine);
    kernels += file.versions.front().kernels.size();
  }
  for (const ir::Machine* machine : machines) {
    const ScoredFile& first = *std::ranges::find(files, machine, &ScoredFile::machine);
    out += fmt::format("<h2>Instruction roofline of {}</h2>\n", escaped(machine_title(first))) +
           roofline_chart(*machine, files) + overview(files, *machine);
  }
  // With many kernels, sections are closed and opened from the overview.
  constexpr size_t most_open = 12;
  for (size_t at = 0; at < files.size(); ++at) {
    const ScoredFile& file = files[at];
    out += fmt::format("<h2>{}{} on {}</h2>\n", escaped(file.file),
                       file.size.empty() ? "" : " (" + escaped(file.size) + ")", escaped(machine_title(file)));
    const std::vector<ScoredKernel>& baseline = file.versions.front().kernels;
    for (size_t i = 0; i < baseline.size(); ++i)
      out += kernel_section(file, baseline[i], section_name(at, i), kernels <= most_open);
  }
  return out + "</body></html>\n";
}

} // namespace ptxrewrite::evaluate
