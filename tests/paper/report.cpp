#include "tests/paper/report.h"

#include "evaluate/score/score_paper.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <optional>

namespace ptxrewrite::tests {
namespace {

using json = nlohmann::ordered_json;

double share(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}
std::string percent(double fraction) {
  return fmt::format("{:.1f}", 100 * fraction);
}

// The share of thread instructions saved by an ideal machine.
double saved(uint64_t left, const IdealCounts& ideal) {
  return ideal.baseline ? 1 - share(left, ideal.baseline) : 0;
}

// A measurement in machine or in PTX instructions.
struct Level {
  const emulator::SectionCounts& hardware;
  uint64_t baseline;
  const IdealCounts& ideal;
  uint64_t moves, operands;
  uint64_t copies; // in PTX only

  double reduction() const { return baseline ? 1 - share(hardware.total().warps, baseline) : 0; }
  double linear_share() const { return share(hardware.linear().warps, hardware.total().warps); }
};
Level machine_level(const HardwareMeasurement& row) {
  return {row.hardware, row.baseline_warps, row.ideal, row.moves, row.operands, 0};
}
Level ptx_level(const HardwareMeasurement& row) {
  return {row.hardware_ptx, row.baseline_ptx_warps, row.ideal_ptx, row.moves_ptx, row.operands_ptx, row.copies_ptx};
}

// A figure of the paper, and its computation here. `sample`: of one benchmark, else the average over all.
struct PaperFigure {
  const char* what;
  const char* paper;
  const char* sample;
  double (*of)(const Level&);
};
double reduction_of(const Level& level) {
  return level.reduction();
}
// As in the paper: parameters, immediates, special and linear registers are operands (paper_operands.h).
double paper_reduction_of(const Level& level) {
  return level.reduction() + share(level.copies, level.baseline);
}
constexpr std::array paper_figures = {
    PaperFigure{"warp instructions saved, average (Fig. 12)", "28", nullptr, reduction_of},
    PaperFigure{"the same, each operand that is a linear register a move", "28", nullptr,
                [](const Level& level) { return level.reduction() - share(level.operands, level.baseline); }},
    PaperFigure{"the same, all moves of linear registers left out", "28", nullptr,
                [](const Level& level) { return level.reduction() + share(level.moves, level.baseline); }},
    PaperFigure{"the same, ld.param, cvta, mov as operands (Fig. 6, §4.3; of PTX)", "28", nullptr, paper_reduction_of},
    PaperFigure{"linear instructions' share, average (Fig. 14)", "1", nullptr,
                [](const Level& level) { return level.linear_share(); }},
    PaperFigure{"WP: thread instructions saved, average (Fig. 4)", "27", nullptr,
                [](const Level& level) { return saved(level.ideal.within_warps, level.ideal); }},
    PaperFigure{"TB: the same", "22", nullptr,
                [](const Level& level) { return saved(level.ideal.within_blocks, level.ideal); }},
    PaperFigure{"LN: the same", "33", nullptr,
                [](const Level& level) { return saved(level.ideal.linear, level.ideal); }},
    PaperFigure{"LPS (laplace3d), warp instructions saved", "48", "laplace3d", reduction_of},
    PaperFigure{"SPM (spmv)", "47", "spmv", reduction_of},
    PaperFigure{"BP (backprop; Table 3)", "38.3 .. 39.7", "backprop", reduction_of},
    PaperFigure{"LUD (lud)", "25", "lud", reduction_of},
    PaperFigure{"LUD, linear instructions' share of the baseline", "19", "lud",
                [](const Level& level) { return share(level.hardware.linear().warps, level.baseline); }},
};

// The figure here; nullopt if its sample is not among the rows.
std::optional<double> figure_here(const PaperFigure& figure, std::span<const HardwareMeasurement> rows,
                                  Level (*level)(const HardwareMeasurement&), bool of_benchmarks = false) {
  const evaluate::Paper& paper = *evaluate::find_paper("r2d2");
  double sum = 0;
  size_t count = 0;
  for (const HardwareMeasurement& row : rows) {
    if (figure.sample && row.sample != figure.sample) continue;
    if (of_benchmarks && !evaluate::is_benchmark(paper, row.sample)) continue;
    sum += figure.of(level(row));
    ++count;
  }
  return count ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

std::string launches_text(const HardwareMeasurement& row) {
  if (!row.rewritten) return "unchanged";
  if (row.launches_rewritten == row.launches) return "";
  return fmt::format("{} of {}", row.launches - row.launches_rewritten, row.launches);
}

std::string reasons_text(std::span<const HardwareMeasurement> rows) {
  std::string out;
  for (const HardwareMeasurement& row : rows)
    for (const std::string& reason : row.reasons)
      out += row.sample + ": the original ran, not " + reason + '\n';
  return out;
}

} // namespace

std::string hardware_text(std::span<const HardwareMeasurement> rows, const ir::Machine& machine) {
  std::string out =
      fmt::format("R2D2 hardware form: machine-level warp instructions on {}, {} SMs\n", machine.name, machine.sms);
  TextTable table{{{"sample"},
                   {"size"},
                   {"baseline", true},
                   {"scalar %", true},
                   {"coefficient", true},
                   {"thread", true},
                   {"block", true},
                   {"rest", true},
                   {"moves", true},
                   {"operands", true},
                   {"saved %", true},
                   {"linear %", true},
                   {"PTX saved %", true},
                   {"as the paper %", true},
                   {"WP %", true},
                   {"TB %", true},
                   {"LN %", true},
                   {"original ran"}},
                  {}};
  for (const HardwareMeasurement& row : rows) {
    table.rows.push_back(
        {row.sample, row.size, std::to_string(row.baseline_warps),
         percent(share(row.ideal.scalar_warps, row.baseline_warps)), std::to_string(row.hardware.coefficient.warps),
         std::to_string(row.hardware.thread.warps), std::to_string(row.hardware.block.warps),
         std::to_string(row.hardware.rest.warps), std::to_string(row.moves), std::to_string(row.operands),
         percent(row.reduction()), percent(row.linear_share()), percent(ptx_level(row).reduction()),
         percent(paper_reduction_of(ptx_level(row))), percent(saved(row.ideal.within_warps, row.ideal)),
         percent(saved(row.ideal.within_blocks, row.ideal)), percent(saved(row.ideal.linear, row.ideal)),
         launches_text(row)});
  }
  out += table.text() + reasons_text(rows);
  TextTable averages{{{"figure, %"},
                      {"paper", true},
                      {"its benchmarks", true},
                      {"of PTX", true},
                      {"all here", true},
                      {"of PTX", true}},
                     {}};
  const auto of_benchmarks = [&](const PaperFigure& figure, Level (*level)(const HardwareMeasurement&)) {
    const std::optional<double> here = figure_here(figure, rows, level, true);
    return here ? percent(*here) : "-";
  };
  for (const PaperFigure& figure : paper_figures)
    if (std::optional<double> here = figure_here(figure, rows, machine_level))
      averages.rows.push_back({figure.what, figure.paper, of_benchmarks(figure, machine_level),
                               of_benchmarks(figure, ptx_level), percent(*here),
                               percent(*figure_here(figure, rows, ptx_level))});
  return out + '\n' + averages.text();
}

json hardware_json(std::span<const HardwareMeasurement> rows, const ir::Machine& machine) {
  json samples = json::array();
  auto counts = [](const emulator::InstructionCount& count) {
    return json{{"warps", count.warps}, {"threads", count.threads}};
  };
  for (const HardwareMeasurement& row : rows)
    samples.push_back({{"sample", row.sample},
                       {"size", row.size},
                       {"baseline", {{"warps", row.baseline_warps}, {"threads", row.baseline_threads}}},
                       {"scalar_warps", row.ideal.scalar_warps},
                       {"hardware",
                        {{"coefficient", counts(row.hardware.coefficient)},
                         {"thread", counts(row.hardware.thread)},
                         {"block", counts(row.hardware.block)},
                         {"rest", counts(row.hardware.rest)},
                         {"moves_in_rest", row.moves},
                         {"linear_operands", row.operands}}},
                       {"reduction", row.reduction()},
                       {"reduction_ptx", ptx_level(row).reduction()},
                       {"reduction_as_the_paper", paper_reduction_of(ptx_level(row))},
                       {"linear_share", row.linear_share()},
                       {"ideal",
                        {{"WP", saved(row.ideal.within_warps, row.ideal)},
                         {"TB", saved(row.ideal.within_blocks, row.ideal)},
                         {"LN", saved(row.ideal.linear, row.ideal)}}},
                       {"rewritten", row.rewritten},
                       {"launches", row.launches},
                       {"launches_rewritten", row.launches_rewritten},
                       {"reasons", row.reasons},
                       {"linear_registers", row.registers}});
  json figures = json::array();
  for (const PaperFigure& figure : paper_figures)
    if (std::optional<double> here = figure_here(figure, rows, machine_level))
      figures.push_back({{"figure", figure.what},
                         {"paper_percent", figure.paper},
                         {"here_percent", 100 * *here},
                         {"here_ptx_percent", 100 * *figure_here(figure, rows, ptx_level)}});
  // Fig. 12 over the samples that correspond to the paper's benchmarks, counted as in the paper.
  constexpr PaperFigure as_paper{"", "28", nullptr, paper_reduction_of};
  if (std::optional<double> here = figure_here(as_paper, rows, ptx_level, true))
    figures.push_back({{"figure", "warp instructions saved as the paper counts, its benchmarks"},
                       {"paper_percent", as_paper.paper},
                       {"here_ptx_percent", 100 * *here}});
  return {{"machine", std::string(machine.name)}, {"samples", samples}, {"figures", figures}};
}

namespace {

double geometric_mean(std::span<const LegalMeasurement> rows, double (LegalMeasurement::*ratio)() const) {
  double sum = 0;
  for (const LegalMeasurement& row : rows)
    sum += std::log((row.*ratio)());
  return rows.empty() ? 1 : std::exp(sum / static_cast<double>(rows.size()));
}

std::string change_text(uint32_t before, uint32_t after) {
  return before == after ? std::to_string(before) : fmt::format("{} -> {}", before, after);
}

// Geometric mean of a ratio, and every sample with a ratio other than 1.
std::string ratio_line(std::span<const LegalMeasurement> rows, const std::string& what,
                       double (LegalMeasurement::*ratio)() const) {
  std::string wins, losses;
  for (const LegalMeasurement& row : rows) {
    const double value = (row.*ratio)();
    std::string& list = value < 1 ? wins : losses;
    if (value != 1) list += fmt::format("{}{} {:+.1f} %", list.empty() ? "" : ", ", row.sample, 100 * (value - 1));
  }
  return fmt::format("{}, geometric mean over {} samples: {:.4f}; wins: {}; loses: {}\n", what, rows.size(),
                     geometric_mean(rows, ratio), wins.empty() ? "none" : wins, losses.empty() ? "none" : losses);
}

} // namespace

std::string legal_text(std::span<const LegalMeasurement> rows, const std::string& passes,
                       const std::string& architecture) {
  std::string out = fmt::format("{}, legal form, by ptxas for {}: kernels that changed\n", passes, architecture);
  TextTable table{
      {{"sample"}, {"kernel"}, {"instructions", true}, {"registers", true}, {"spilled", true}, {"warps per SM", true}},
      {}};
  for (const LegalMeasurement& row : rows)
    for (const LegalKernel& kernel : row.kernels) {
      if (!kernel.changed) continue;
      const LegalKernel::Figures &before = kernel.before, &after = kernel.after;
      table.rows.push_back({row.sample, kernel.kernel, change_text(before.instructions, after.instructions),
                            change_text(before.registers, after.registers),
                            change_text(before.spilled_bytes, after.spilled_bytes),
                            change_text(before.resident_warps, after.resident_warps)});
    }
  return out + table.text() +
         ratio_line(rows, "warp instructions executed, by ir/machine's weights", &LegalMeasurement::dynamic_ratio) +
         ratio_line(rows, "machine instructions in the code, by ptxas", &LegalMeasurement::ratio);
}

json legal_json(std::span<const LegalMeasurement> rows, const std::string& passes, const std::string& architecture) {
  json samples = json::array();
  auto figures = [](const LegalKernel::Figures& row) {
    return json{{"instructions", row.instructions},
                {"registers", row.registers},
                {"spilled_bytes", row.spilled_bytes},
                {"warps_per_sm", row.resident_warps}};
  };
  for (const LegalMeasurement& row : rows) {
    json kernels = json::array();
    for (const LegalKernel& kernel : row.kernels)
      kernels.push_back({{"kernel", kernel.kernel},
                         {"changed", kernel.changed},
                         {"before", figures(kernel.before)},
                         {"after", figures(kernel.after)}});
    samples.push_back({{"sample", row.sample},
                       {"ratio", row.ratio()},
                       {"dynamic_ratio", row.dynamic_ratio()},
                       {"dynamic_before", row.dynamic_before},
                       {"dynamic_after", row.dynamic_after},
                       {"launches", row.launches},
                       {"launches_rewritten", row.launches_rewritten},
                       {"kernels", kernels}});
  }
  return {{"passes", passes},
          {"architecture", architecture},
          {"geometric_mean", geometric_mean(rows, &LegalMeasurement::ratio)},
          {"dynamic_geometric_mean", geometric_mean(rows, &LegalMeasurement::dynamic_ratio)},
          {"samples", samples}};
}

} // namespace ptxrewrite::tests
