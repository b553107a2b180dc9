#include "evaluate/report/report_page.h"

#include "evaluate/common/optimise.h"
#include "evaluate/report/bounds.h"
#include "evaluate/report/page_parts.h"
#include "evaluate/score/score_energy.h"
#include "evaluate/score/score_report.h"
#include "evaluate/score/score_roofline.h"
#include "ir/machine/figures/occupancy.h"
#include "support/text/html_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

namespace ptxrewrite::evaluate {
namespace {

using timing::Cause;
using timing::cause_count;

// A version of one kernel; the first is the baseline.
struct KernelVersion {
  const ScoredVersion& version;
  std::string name; // short name
  const ScoredKernel& kernel;
};

struct PageInput {
  const FileFacts& file;
  const KernelFacts& facts;
  const ir::Machine& machine;
  std::vector<KernelVersion> versions; // empty if it was not scored
};

// The pipeline of -O is too long to be shown.
std::string short_name(const std::string& name) {
  return name == optimising_pipeline ? "-O" : name;
}

PageInput page_input(const FileFacts& file, size_t number) {
  PageInput input{file, file.kernels[number], *file.scored.machine, {}};
  const std::vector<const ScoredKernel*> kernels = in_versions(file.scored, input.facts.kernel);
  for (size_t i = 0; i < kernels.size(); ++i)
    if (kernels[i])
      input.versions.push_back({file.scored.versions[i], short_name(file.scored.versions[i].name), *kernels[i]});
  return input;
}

std::string time_text(double seconds) {
  const double us = seconds * 1e6;
  return us >= 1e4   ? fmt::format("{:.1f} ms", us / 1e3)
         : us >= 100 ? fmt::format("{:.0f} us", us)
                     : fmt::format("{:.2f} us", us);
}

std::string count_text(double value) {
  return value >= 1e6 ? fmt::format("{:.3g} M", value / 1e6) : fmt::format("{:.0f}", value);
}

// Causes in order of decreasing clocks; those that round to zero are omitted.
std::vector<Cause> causes_of(const ScoredKernel& kernel) {
  std::vector<Cause> causes;
  for (size_t i = 0; i < cause_count; ++i)
    if (kernel.stack[i] > 0.0005 * kernel.clocks) causes.push_back(static_cast<Cause>(i));
  std::ranges::stable_sort(causes, std::greater(),
                           [&](Cause cause) { return kernel.stack[static_cast<size_t>(cause)]; });
  return causes;
}

double share_of(const ScoredKernel& kernel, Cause cause) {
  return kernel.clocks > 0 ? kernel.stack[static_cast<size_t>(cause)] / kernel.clocks : 0;
}

ir::KernelResources resources_of(const ScoredKernel& kernel) {
  return {static_cast<uint32_t>(kernel.block.count()), kernel.registers, kernel.shared_bytes};
}

double issue_share(const PageInput& input, const ScoredKernel& kernel) {
  const double slots =
      kernel.clocks * input.machine.sms * input.machine.schedulers * std::max(input.machine.issue_rate.value, 0.01);
  return slots > 0 ? kernel.instructions / slots : 0;
}

double dram_share(const PageInput& input, const ScoredKernel& kernel) {
  const double peak = input.machine.memory.achieved_dram_gb_per_second.value * 1e9;
  return kernel.seconds > 0 && peak > 0 ? kernel.dram_bytes / kernel.seconds / peak : 0;
}

std::string tile(std::string_view value, std::string_view what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", value, what);
}

const KernelVersion* fastest(const PageInput& input) {
  const auto best =
      std::ranges::min_element(input.versions, {}, [](const KernelVersion& one) { return one.kernel.clocks; });
  return best == input.versions.end() ? nullptr : &*best;
}

std::string tiles(const PageInput& input) {
  const ScoredKernel& kernel = input.versions.front().kernel;
  const ir::Occupancy held = ir::occupancy(input.machine, resources_of(kernel));
  std::string out = "<div class=\"tiles\">\n";
  out += tile(time_text(kernel.seconds),
              fmt::format("{} clocks{}", count_text(kernel.clocks),
                          kernel.launches > 1 ? fmt::format(", {} launches", kernel.launches) : ""));
  const std::vector<Cause> causes = causes_of(kernel);
  if (!causes.empty())
    out += tile(escaped(timing::spelling(causes.front())),
                fmt::format("{:.0f} % of the clocks", 100 * share_of(kernel, causes.front())));
  out += tile(fmt::format("{:.0f} %", 100 * issue_share(input, kernel)), "of the issue slots used");
  out += tile(fmt::format("{:.0f} %", 100 * dram_share(input, kernel)), "of DRAM's bandwidth used");
  out += tile(fmt::format("{} of {}", held.warps, input.machine.occupancy.max_warps),
              fmt::format("warps an SM can hold, bound by {}", ir::spelling(held.limit)));
  const double places = double(held.blocks) * input.machine.sms;
  if (places > 0)
    out += tile(fmt::format("{:.3g}", double(kernel.grid.count()) / places),
                fmt::format("waves: {} blocks, the machine holds {:.0f}", kernel.grid.count(), places));
  const KernelVersion* best = fastest(input);
  if (input.versions.size() > 1 && best)
    out += tile(best->kernel.clocks > 0 ? fmt::format("{:.3f} x", kernel.clocks / best->kernel.clocks) : "",
                &best->kernel == &kernel ? "no version is faster" : "as fast: " + escaped(best->name));
  return out + "</div>\n";
}

std::string lead(const PageInput& input) {
  const ScoredKernel& kernel = input.versions.front().kernel;
  const std::vector<Cause> causes = causes_of(kernel);
  if (causes.empty()) return {};
  std::string out =
      fmt::format("<p class=\"lead\"><b>{:.0f} % of the clocks: {}.</b> {}</p>\n", 100 * share_of(kernel, causes[0]),
                  escaped(timing::spelling(causes[0])), advice(causes[0]));
  if (causes.size() > 1 && share_of(kernel, causes[1]) > 0.1)
    out += fmt::format("<p>Then {} ({:.0f} %): {}</p>\n", escaped(timing::spelling(causes[1])),
                       100 * share_of(kernel, causes[1]), advice(causes[1]));
  return out;
}

std::string hot_lines(const PageInput& input) {
  std::vector<const SourceRow*> rows;
  uint64_t all = 0;
  for (const SourceRow& row : input.facts.rows) {
    const uint64_t issued = row.counters.executions * row.machine_instructions;
    all += issued;
    if (issued && row.line) rows.push_back(&row);
  }
  auto issued = [](const SourceRow* row) { return row->counters.executions * row->machine_instructions; };
  std::ranges::stable_sort(rows, std::greater(), issued);
  constexpr size_t most = 5;
  if (rows.size() > most) rows.resize(most);
  PageTable table{{{"line"}, {"share of issued"}, {"transactions"}, {"PTX", false}}, {}};
  for (const SourceRow* row : rows) {
    const double share = all ? double(issued(row)) / double(all) : 0;
    table.rows.push_back({fmt::format("<td data-k=\"{0}\"><a href=\"#L{0}\">{0}</a></td>", row->line),
                          bar_cell(share, fmt::format("{:.1f} %", 100 * share), share),
                          std::to_string(row->counters.transactions),
                          "<td class=\"ptx\">" + escaped(row->text) + "</td>"});
  }
  return table.html();
}

std::string techniques_table(const PageInput& input) {
  PageTable table{{{"technique", false}, {"instructions left"}, {"counted by", false}, {"rule", false, "w"}}, {}};
  for (const TechniqueLeft& one : input.facts.techniques)
    table.rows.push_back({escaped(one.name), bar_cell(one.left, fmt::format("{:.1f} %", 100 * one.left), one.left),
                          one.by_threads ? "threads" : "warps",
                          fmt::format("{} <span class=\"soft\">({})</span>", escaped(one.what), escaped(one.source))});
  return table.html();
}

std::string versions_table(const PageInput& input) {
  const ScoredKernel& baseline = input.versions.front().kernel;
  PageTable table{{{"version", false},
                   {"time"},
                   {"as fast"},
                   {"machine instructions"},
                   {"registers"},
                   {"warps/SM"},
                   {"DRAM bytes"},
                   {"", false, "w"}},
                  {}};
  for (const auto& [version, name, kernel] : input.versions) {
    const double times = kernel.clocks > 0 ? baseline.clocks / kernel.clocks : 0;
    table.rows.push_back(
        {fmt::format("<td class=\"t w\">{}</td>", escaped(name)),
         fmt::format("<td data-k=\"{:.9g}\">{}</td>", kernel.seconds, time_text(kernel.seconds)),
         fmt::format("<td data-k=\"{0:.6f}\">{0:.3f} x</td>", times),
         fmt::format("<td data-k=\"{}\">{}</td>", kernel.instructions, count_text(kernel.instructions)),
         std::to_string(kernel.registers), std::to_string(kernel.first.resident_warps),
         fmt::format("<td data-k=\"{}\">{}</td>", kernel.dram_bytes, count_text(kernel.dram_bytes)),
         escaped(version.remark)});
  }
  return table.html();
}

// Letters identify parts of the stacks in all versions; they are assigned in the baseline's order.
std::string stack_section(const PageInput& input) {
  std::vector<Cause> causes;
  for (const KernelVersion& one : input.versions)
    for (Cause cause : causes_of(one.kernel))
      if (std::ranges::find(causes, cause) == causes.end()) causes.push_back(cause);
  double longest = 0;
  for (const KernelVersion& one : input.versions)
    longest = std::max(longest, one.kernel.clocks);
  std::vector<std::string> letters;
  for (size_t i = 0; i < causes.size(); ++i)
    letters.emplace_back(1, static_cast<char>('A' + i % 26));
  std::string out;
  for (const KernelVersion& one : input.versions) {
    std::vector<StackPart> parts;
    for (size_t i = 0; i < causes.size(); ++i)
      parts.push_back({std::string(timing::spelling(causes[i])), static_cast<unsigned>(i % stack_colours),
                       one.kernel.stack[static_cast<size_t>(causes[i])]});
    out += fmt::format("<h3>{}: {} clocks, CPI {:.2f}</h3>\n", escaped(one.name), count_text(one.kernel.clocks),
                       one.kernel.instructions > 0
                           ? one.kernel.clocks * input.machine.sms * input.machine.schedulers / one.kernel.instructions
                           : 0) +
           stack_bar(parts, longest, letters);
  }
  PageTable table{{{"", false}, {"cause", false}}, {}};
  for (const KernelVersion& one : input.versions)
    table.columns.push_back({escaped(one.name), true, "name"});
  table.columns.push_back({"what helps", false, "w wide"});
  for (size_t i = 0; i < causes.size(); ++i) {
    std::vector<std::string> row{
        fmt::format("<span class=\"key\" style=\"background:var(--c{})\">{}</span>", i % stack_colours, letters[i]),
        escaped(timing::spelling(causes[i]))};
    for (const KernelVersion& one : input.versions)
      row.push_back(fmt::format("<td data-k=\"{0:.4f}\">{0:.1f} %</td>", 100 * share_of(one.kernel, causes[i])));
    row.emplace_back(advice(causes[i]));
    table.rows.push_back(std::move(row));
  }
  return out + table.html();
}

std::string roofline_section(const PageInput& input) {
  ScoredFile one = input.file.scored;
  for (ScoredVersion& version : one.versions) {
    version.name = short_name(version.name);
    std::erase_if(version.kernels, [&](const ScoredKernel& kernel) { return kernel.kernel != input.facts.kernel; });
  }
  return roofline_chart(input.machine, std::span(&one, 1), RooflineNames::versions);
}

std::string registers_section(const PageInput& input) {
  const ScoredKernel& kernel = input.versions.front().kernel;
  Curve live{.title = "Live registers along the text",
             .x_name = "line of PTX",
             .y_name = "registers of 32 bits",
             .points = {},
             .steps = true,
             .y_top = 0,
             .mark = {}};
  for (const SourceRow& row : input.facts.rows) {
    if (row.is_label || !row.line || (!live.points.empty() && row.line <= live.points.back().first)) continue;
    live.points.emplace_back(row.line, row.live);
    if (row.live == input.facts.most_live && live.mark.empty() && row.live) {
      live.mark = fmt::format("{} at line {}", row.live, row.line);
      live.marked_x = row.line;
      live.marked_y = row.live;
    }
  }
  const ir::KernelResources own = resources_of(kernel);
  const double top = input.machine.occupancy.max_warps;
  const ir::Occupancy now = ir::occupancy(input.machine, own);
  auto sweep = [&](std::string title, std::string x_name, uint32_t first, uint32_t last, uint32_t step, uint32_t here,
                   auto change) {
    Curve curve{.title = std::move(title),
                .x_name = std::move(x_name),
                .y_name = "warps that an SM holds",
                .points = {},
                .steps = true,
                .y_top = top,
                .mark = {}};
    for (uint32_t x = first; x <= last; x += step) {
      ir::KernelResources changed = own;
      change(changed, x);
      curve.points.emplace_back(x, ir::occupancy(input.machine, changed).warps);
    }
    curve.mark = fmt::format("{}: {} warps", here, now.warps);
    curve.marked_x = std::clamp(here, first, last);
    curve.marked_y = now.warps;
    return curve_chart(curve);
  };
  std::string out = "<div class=\"pair\">\n" + curve_chart(live);
  out += sweep("Occupancy by registers", "registers of a thread", 16,
               std::max(64u, input.machine.occupancy.max_registers_per_thread), 1, own.registers,
               [](ir::KernelResources& changed, uint32_t x) { changed.registers = x; });
  out +=
      sweep("Occupancy by size of the block", "threads of a block", 32, input.machine.occupancy.max_threads_per_block,
            32, own.threads_per_block, [](ir::KernelResources& changed, uint32_t x) { changed.threads_per_block = x; });
  out += sweep("Occupancy by shared memory", "bytes of a block", 0, input.machine.occupancy.max_shared_bytes_per_block,
               512, own.shared_bytes, [](ir::KernelResources& changed, uint32_t x) { changed.shared_bytes = x; });
  out += "</div>\n";
  return out +
         fmt::format("<p class=\"soft\">{} registers of a thread ({}), {} bytes of shared memory of a block; blocks "
                     "an SM holds by warps {}, registers {}, shared memory {}, blocks {}.</p>\n",
                     kernel.registers, kernel.registers_by_ptxas ? "by ptxas" : "estimated", kernel.shared_bytes,
                     now.by_warps, now.by_registers, now.by_shared, now.by_blocks);
}

std::string energy_table(const PageInput& input, const timing::EnergySet& set) {
  PageTable table{
      {{"version", false}, {"uJ"}, {"to baseline"}, {"front end"}, {"registers"}, {"units"}, {"memory"}, {"static"}},
      {}};
  double before = 0;
  for (const auto& [version, name, kernel] : input.versions) {
    const timing::Energy energy = timing::energy(set, kernel.events, kernel.powered_seconds);
    if (&kernel == &input.versions.front().kernel) before = energy.all();
    auto part = [&](double joule) {
      const double share = energy.all() > 0 ? joule / energy.all() : 0;
      return bar_cell(share, fmt::format("{:.1f} %", 100 * share), share);
    };
    table.rows.push_back(
        {fmt::format("<td class=\"t w\">{}</td>", escaped(name)), fmt::format("{:.4g}", energy.all() * 1e6),
         before > 0 ? fmt::format("{:+.1f} %", 100 * (energy.all() / before - 1)) : "", part(energy.front_end),
         part(energy.registers), part(energy.units), part(energy.memory), part(energy.constant)});
  }
  return table.html();
}

std::string energy_section(const PageInput& input) {
  const timing::EnergySet& own = applying_set(input.machine);
  std::string out = fmt::format("<p>By the set that is nearest to {}: <b>{}</b> <span class=\"soft\">({})</span></p>\n",
                                escaped(input.machine.name), escaped(own.name), escaped(own.about)) +
                    energy_table(input, own);
  out += "<details><summary>Other sets, which never mix with it</summary>\n";
  for (const timing::EnergySet& set : timing::energy_sets())
    if (&set != &own)
      out += fmt::format("<h3>{} <span class=\"soft\">({})</span></h3>\n", escaped(set.name), escaped(set.about)) +
             energy_table(input, set);
  out += "</details>\n";
  for (size_t i = 1; i < input.versions.size(); ++i)
    out += fmt::format("<p>{}, all sets: {}.</p>\n", escaped(input.versions[i].name),
                       spelling(energy_sign(input.versions.front().kernel, input.versions[i].kernel)));
  return out;
}

std::string passes_section(const PageInput& input) {
  std::string out;
  if (input.file.scored.versions.size() > 1)
    out += "<p class=\"soft\">By " + escaped(input.file.scored.versions[1].name) + ".</p>\n";
  if (!input.facts.remarks.empty()) {
    out += "<ul>";
    for (const std::string& remark : input.facts.remarks)
      out += "<li>" + escaped(remark) + "</li>\n";
    out += "</ul>\n";
  }
  if (!input.facts.has_difference) return out + "<p>The passes leave this kernel as it is.</p>\n";
  const DifferenceCounts& counts = input.facts.difference.counts;
  return out +
         fmt::format("<p>{} to {} PTX instructions: {} kept, {} changed, {} removed, {} inserted.</p>\n", counts.left,
                     counts.right, counts.kept, counts.changed, counts.removed, counts.inserted) +
         difference_view(input.facts.difference);
}

std::string section(std::string_view id, std::string_view title, const std::string& content) {
  return fmt::format("<h2 id=\"{}\">{}</h2>\n", id, title) + content;
}

std::string heading(const PageInput& input) {
  std::string out = "<h1>" + escaped(input.facts.kernel) + "</h1>\n<p class=\"soft\">" +
                    escaped(input.file.scored.file) +
                    (input.file.scored.size.empty() ? "" : ", size " + escaped(input.file.scored.size)) + ", on " +
                    escaped(machine_title(input.file.scored));
  if (!input.versions.empty()) {
    const ScoredKernel& kernel = input.versions.front().kernel;
    out += fmt::format("; {} x {} x {} blocks of {} x {} x {} threads", kernel.grid.x, kernel.grid.y, kernel.grid.z,
                       kernel.block.x, kernel.block.y, kernel.block.z);
  }
  return out + ". Counts are of a run on the emulator; times and energies are estimates of a model.</p>\n";
}

} // namespace

std::string report_page(const FileFacts& file, size_t number) {
  const PageInput input = page_input(file, number);
  std::string out = page_begin(input.facts.kernel + " - ptxrewrite") + heading(input);
  if (input.versions.empty()) return out + "<p>It was not launched.</p>\n" + page_end();
  out += tiles(input) + lead(input) +
         "<nav><a href=\"#versions\">versions</a><a href=\"#techniques\">techniques</a><a href=\"#stack\">CPI "
         "stack</a><a href=\"#cuda\">CUDA</a><a href=\"#source\">PTX</a><a href=\"#flow\">control flow</a><a "
         "href=\"#registers\">registers"
         "</a><a href=\"#roofline\">roofline</a><a href=\"#energy\">energy</a><a href=\"#passes\">before and after</a>"
         "</nav>\n";
  const std::string cuda = hot_cuda_lines(input.facts);
  out += "<div class=\"pair\">" +
         (cuda.empty() ? "" : "<div><h3>Lines of CUDA that issue most</h3>" + cuda + "</div>") +
         "<div><h3>Lines of PTX that issue most</h3>" + hot_lines(input) + "</div></div>\n";
  out += section("versions", "Results of the passes", versions_table(input));
  out += section("techniques", "Instructions left by each technique",
                 "<p class=\"soft\">Of the machine instructions of this run, if the technique took all that it can: "
                 "limits, not times.</p>\n" +
                     techniques_table(input));
  out += section("stack", "Clocks by cause (CPI stack)", stack_section(input));
  out +=
      section("cuda", "CUDA source",
              (input.facts.cuda.empty() ? ""
                                        : "<p class=\"soft\">Sums over the PTX of each line. Instructions of inlined "
                                          "functions count for the lines of those functions.</p>\n") +
                  cuda_view(input.facts));
  out += section(
      "source", "PTX source",
      "<p class=\"soft\">Issued: machine instructions by warps. Redundant: executions in which all warps of "
      "the block take the same values. Transactions: sectors of 32 bytes, or passes over the banks of shared "
      "memory. Notes below a line: what the lowering makes of it, with the machine instructions that it saves (-1) or "
      "adds (+1), and what the passes say. A click on a head sorts.</p>\n" +
          source_view(input.facts));
  out += section("flow", "Control flow",
                 "<p class=\"soft\">Blocks in the order of the text; edges with the threads that take them, falls "
                 "dashed; the bar is the share of issued instructions.</p>\n" +
                     flow_chart(input.facts));
  out += section("registers", "Registers and occupancy", registers_section(input));
  out += section("roofline", "Instruction roofline", "<div class=\"scroll\">" + roofline_section(input) + "</div>");
  out += section("energy", "Energy", energy_section(input));
  out += section("passes", "Before and after", passes_section(input));
  return out + page_end();
}

std::string report_index(std::span<const ReportLink> links) {
  PageTable table{{{"kernel", false, "w"},
                   {"file", false, "w"},
                   {"machine", false},
                   {"time"},
                   {"bound by", false},
                   {"of the clocks"},
                   {"fastest version"}},
                  {}};
  for (const ReportLink& link : links) {
    const PageInput input = page_input(*link.file, link.kernel);
    if (input.versions.empty()) continue;
    const ScoredKernel& kernel = input.versions.front().kernel;
    const std::vector<Cause> causes = causes_of(kernel);
    const KernelVersion* best = fastest(input);
    const double times = best && best->kernel.clocks > 0 ? kernel.clocks / best->kernel.clocks : 1;
    const double share = causes.empty() ? 0 : share_of(kernel, causes.front());
    table.rows.push_back({fmt::format("<a href=\"{}\">{}</a>", escaped(link.page), escaped(input.facts.kernel)),
                          escaped(link.file->scored.file), escaped(machine_title(link.file->scored)),
                          fmt::format("<td data-k=\"{:.9g}\">{}</td>", kernel.seconds, time_text(kernel.seconds)),
                          causes.empty() ? "" : escaped(timing::spelling(causes.front())),
                          bar_cell(share, fmt::format("{:.0f} %", 100 * share), share),
                          fmt::format("<td data-k=\"{0:.6f}\">{0:.3f} x</td>", times)});
  }
  return page_begin("Kernels - ptxrewrite") + "<h1>Kernels</h1>\n" + table.html() + page_end();
}

std::string report_file_name(const std::string& launch_file, const std::string& kernel) {
  std::string name = std::filesystem::path(launch_file).stem().string() + "-" + kernel;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  // Mangled names of templates can exceed the limit of file systems.
  constexpr size_t longest = 120;
  if (name.size() > longest) name.resize(longest);
  return name + ".html";
}

} // namespace ptxrewrite::evaluate
