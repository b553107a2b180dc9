#include "cli/score_html.h"
#include "cli/html_text.h"

#include "cli/score_energy.h"
#include "cli/score_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace ptxrewrite::cli {
namespace {

using timing::Cause;
using timing::cause_count;

constexpr double bar_height = 18, bar_gap = 6, label_width = 190, bar_width = 520, picture_width = 860;

// Resources in blues and greens, waits in warm colours, the rest in greys.
std::string colour_of(Cause cause) {
  const auto number = static_cast<double>(cause);
  if (cause <= Cause::dram_bandwidth) return fmt::format("hsl({:.0f},55%,{:.0f}%)", 150 + number * 10, 40 + number * 3);
  if (cause <= Cause::wait_staged)
    return fmt::format("hsl({:.0f},75%,60%)", (number - static_cast<double>(Cause::wait_integer)) * 7);
  return fmt::format("hsl(0,0%,{:.0f}%)", 35 + (number - static_cast<double>(Cause::linear)) * 6);
}

struct Bar {
  std::string label;
  std::vector<std::pair<Cause, double>> parts; // or one part, whose cause gives the colour
  std::string text;                            // behind the bar
};

std::string bars(const std::string& title, const std::vector<Bar>& all) {
  double most = 0;
  for (const Bar& bar : all) {
    double sum = 0;
    for (const auto& [cause, value] : bar.parts)
      sum += value;
    most = std::max(most, sum);
  }
  const double height = static_cast<double>(all.size()) * (bar_height + bar_gap) + 4;
  std::string out = fmt::format("<h4>{}</h4>\n<svg width=\"{}\" height=\"{}\" role=\"img\">\n", escaped(title),
                                picture_width, height);
  double y = 2;
  for (const Bar& bar : all) {
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", label_width - 8, y + bar_height - 5,
                       escaped(bar.label));
    double x = label_width;
    for (const auto& [cause, value] : bar.parts) {
      const double width = most > 0 ? value / most * bar_width : 0;
      out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{}: "
                         "{:.4g}</title></rect>\n",
                         x, y, width, bar_height, colour_of(cause), timing::spelling(cause), value);
      x += width;
    }
    out += fmt::format("<text x=\"{:.2f}\" y=\"{}\">{}</text>\n", x + 6, y + bar_height - 5, escaped(bar.text));
    y += bar_height + bar_gap;
  }
  return out + "</svg>\n";
}

std::string legend(const std::set<Cause>& causes) {
  std::string out = "<p class=\"legend\">";
  for (Cause cause : causes)
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", colour_of(cause), timing::spelling(cause));
  return out + "</p>\n";
}

std::string kernel_section(const ScoredFile& file, const ScoredKernel& kernel) {
  std::vector<Bar> instructions, clocks, stacks;
  std::set<Cause> causes;
  const std::vector<const ScoredKernel*> versions = in_versions(file, kernel.kernel);
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!versions[i]) continue;
    const ScoredKernel& one = *versions[i];
    const std::string& name = file.versions[i].name;
    auto against = [&](double now, double before) {
      return i && before > 0 ? fmt::format(" ({:+.1f} %)", 100 * (now / before - 1)) : std::string();
    };
    instructions.push_back({name,
                            {{Cause::issue, one.instructions}},
                            fmt::format("{:.5g}", one.instructions) + against(one.instructions, kernel.instructions)});
    clocks.push_back(
        {name,
         {{Cause::dram_bandwidth, one.clocks}},
         fmt::format("{:.5g}, {:.2f} us", one.clocks, one.seconds * 1e6) + against(one.clocks, kernel.clocks)});
    Bar stack{name, {}, ""};
    const double by_instruction =
        one.instructions > 0 ? file.machine->sms * file.machine->schedulers / one.instructions : 0;
    for (size_t cause = 0; cause < cause_count; ++cause)
      if (one.stack[cause] > 0.002 * one.clocks) {
        stack.parts.emplace_back(static_cast<Cause>(cause), one.stack[cause] * by_instruction);
        causes.insert(static_cast<Cause>(cause));
      }
    stack.text = fmt::format("CPI {:.2f}", one.clocks * by_instruction);
    stacks.push_back(std::move(stack));
  }
  std::string out = fmt::format("<h3>{}</h3>\n", escaped(kernel.kernel));
  out += bars("machine instructions by warps", instructions) + bars("clocks", clocks);
  out += bars("CPI stack", stacks) + legend(causes);
  for (const timing::EnergySet& set : timing::energy_sets()) {
    std::vector<Bar> energies;
    double before = 0;
    for (size_t i = 0; i < versions.size(); ++i) {
      if (!versions[i]) continue;
      const timing::Energy energy = timing::energy(set, versions[i]->events, versions[i]->powered_seconds);
      if (i == 0) before = energy.all();
      energies.push_back({file.versions[i].name,
                          {{Cause::issue, energy.front_end},
                           {Cause::unit_fp64, energy.registers},
                           {Cause::unit_special, energy.units},
                           {Cause::wait_l2, energy.memory},
                           {Cause::launch, energy.constant}},
                          fmt::format("{:.4g} uJ", energy.all() * 1e6) +
                              (i && before > 0 ? fmt::format(" ({:+.1f} %)", 100 * (energy.all() / before - 1)) : "")});
    }
    out += bars(fmt::format("energy, {} ({}): front end, registers, units, memory, static", set.name, set.about),
                energies);
  }
  for (size_t i = 1; i < versions.size(); ++i)
    if (versions[i])
      out += fmt::format("<p>Energy of {} against baseline: {}.</p>\n", escaped(file.versions[i].name),
                         spelling(energy_sign(kernel, *versions[i])));
  return out;
}

// Warp instructions per second over warp instructions per byte of DRAM: below both the issue rate and the bandwidth.
std::string roofline(const ir::Machine& machine, std::span<const ScoredFile> files) {
  const ScoredFile* first = &*std::ranges::find(files, &machine, &ScoredFile::machine);
  const double peak = machine.issue_rate.value * machine.schedulers * machine.sms * machine.clock_mhz * 1e6;
  const double bandwidth = machine.memory.achieved_dram_gb_per_second.value * 1e9;
  constexpr double low_x = 1e-4, high_x = 1e2, size = 420, margin = 60;
  const double high_y = peak * 2, low_y = peak * 1e-5;
  auto x_of = [&](double value) {
    return margin + size * std::log(std::clamp(value, low_x, high_x) / low_x) / std::log(high_x / low_x);
  };
  auto y_of = [&](double value) {
    return 10 + size - size * std::log(std::clamp(value, low_y, high_y) / low_y) / std::log(high_y / low_y);
  };
  std::string out = fmt::format("<h2>Roofline of {}</h2>\n<svg width=\"{}\" height=\"{}\" role=\"img\">\n",
                                machine_title(*first), picture_width, size + 50);
  out +=
      fmt::format("<polyline fill=\"none\" stroke=\"#333\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n",
                  x_of(low_x), y_of(low_x * bandwidth), x_of(peak / bandwidth), y_of(peak), x_of(high_x), y_of(peak));
  for (double x = low_x; x <= high_x * 1.001; x *= 10)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", x_of(x), size + 26, x);
  out +=
      fmt::format("<text x=\"{}\" y=\"{}\">warp instructions per byte of DRAM</text>\n", margin + size / 3, size + 44);
  out += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{:.0f} G warp instructions/s, {:.0f} GB/s</text>\n", x_of(high_x) + 8,
                     y_of(peak) + 4, peak / 1e9, bandwidth / 1e9);
  for (const ScoredFile& file : files) {
    if (file.machine != &machine) continue;
    for (size_t i = 0; i < file.versions.size(); ++i)
      for (const ScoredKernel& kernel : file.versions[i].kernels) {
        if (kernel.seconds <= 0 || kernel.instructions <= 0) continue;
        const double x = kernel.dram_bytes > 0 ? kernel.instructions / kernel.dram_bytes : high_x;
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"hsl({},60%,45%)\"><title>{} {}: {}"
                           "</title></circle>\n",
                           x_of(x), y_of(kernel.instructions / kernel.seconds), 210 + 75 * i, escaped(file.file),
                           escaped(kernel.kernel), escaped(file.versions[i].name));
      }
  }
  return out + "</svg>\n";
}

constexpr const char* head = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>ptxrewrite score</title>
<style>
body{font:14px/1.4 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}
svg text{font:12px system-ui,sans-serif}
h4{margin:.8em 0 .2em;font-weight:600}
.legend span{margin-right:1em;white-space:nowrap}.legend i{display:inline-block;width:.9em;height:.9em;margin-right:.3em}
</style></head><body>
<h1>Scores</h1>
<p>Estimates of an interval model, not measurements; energy by sets of coefficients that are never mixed.</p>
)";

} // namespace

std::string score_html(std::span<const ScoredFile> files) {
  std::string out = head;
  std::vector<const ir::Machine*> machines;
  for (const ScoredFile& file : files)
    if (std::ranges::find(machines, file.machine) == machines.end()) machines.push_back(file.machine);
  for (const ir::Machine* machine : machines)
    out += roofline(*machine, files);
  for (const ScoredFile& file : files) {
    out += fmt::format("<h2>{}{} on {}</h2>\n", escaped(file.file),
                       file.size.empty() ? "" : " (" + escaped(file.size) + ")", machine_title(file));
    for (const ScoredKernel& kernel : file.versions.front().kernels)
      out += kernel_section(file, kernel);
  }
  return out + "</body></html>\n";
}

} // namespace ptxrewrite::cli
