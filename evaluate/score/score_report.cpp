#include "evaluate/score/score_report.h"

#include "evaluate/score/score_energy.h"
#include "evaluate/score/score_estimators.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;
using timing::Cause;
using timing::cause_count;

constexpr double shown_share = 0.0005; // fraction of the time that still rounds to 0.1 %

std::string number(double value) {
  return value >= 1e6 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

double cpi_of(const ScoredKernel& kernel, const ir::Machine& machine) {
  return kernel.instructions > 0 ? kernel.clocks * machine.sms * machine.schedulers / kernel.instructions : 0;
}

std::string summary_text(const ScoredFile& file) {
  TextTable table{{{"kernel", false},
                   {"version", false},
                   {"launches", true},
                   {"warp instructions", true},
                   {"clocks", true},
                   {"us", true},
                   {"CPI", true},
                   {"DRAM GB/s", true},
                   {"warps/SM", true},
                   {"speed-up", true},
                   {"", false}},
                  {}};
  for (const ScoredVersion& version : file.versions)
    for (const ScoredKernel& kernel : version.kernels) {
      const ScoredKernel* baseline = baseline_of(file, kernel);
      const bool first = &version == &file.versions.front();
      table.rows.push_back(
          {kernel.kernel, version.name, fmt::format("{}", kernel.launches), number(kernel.instructions),
           number(kernel.clocks), fmt::format("{:.2f}", kernel.seconds * 1e6),
           fmt::format("{:.2f}", cpi_of(kernel, *file.machine)),
           fmt::format("{:.0f}", kernel.seconds > 0 ? kernel.dram_bytes / kernel.seconds / 1e9 : 0),
           fmt::format("{}", kernel.first.resident_warps),
           first || !baseline ? "" : fmt::format("{:.3f}", baseline->clocks / kernel.clocks),
           first || kernel.rewritten_launches || !version.remark.empty() ? version.remark : "the original runs"});
    }
  return table.text();
}

// The CPI stack of a kernel, with one column per version.
std::string stack_text(const ScoredFile& file, const ScoredKernel& kernel) {
  std::vector<const ScoredKernel*> columns;
  TextTable table{{{kernel.kernel, false}}, {}};
  for (const ScoredVersion& version : file.versions)
    for (const ScoredKernel& one : version.kernels)
      if (one.kernel == kernel.kernel) {
        columns.push_back(&one);
        table.columns.push_back({version.name + ": CPI", true});
        table.columns.push_back({"%", true});
      }
  for (size_t i = 0; i < cause_count; ++i) {
    const bool any = std::ranges::any_of(
        columns, [&](const ScoredKernel* one) { return one->stack[i] > shown_share * one->clocks; });
    if (!any) continue;
    std::vector<std::string> row{std::string(timing::spelling(static_cast<Cause>(i)))};
    for (const ScoredKernel* one : columns) {
      const double share = one->clocks > 0 ? one->stack[i] / one->clocks : 0;
      row.push_back(fmt::format("{:.3f}", share * cpi_of(*one, *file.machine)));
      row.push_back(fmt::format("{:.1f}", 100 * share));
    }
    table.rows.push_back(std::move(row));
  }
  std::vector<std::string> sum{"all"};
  for (const ScoredKernel* one : columns) {
    sum.push_back(fmt::format("{:.3f}", cpi_of(*one, *file.machine)));
    sum.emplace_back("100.0");
  }
  table.rows.push_back(std::move(sum));
  return table.text();
}

std::string terms_text(const std::string& version, const ScoredKernel& kernel) {
  TextTable table{{{kernel.kernel + ", " + version, false}, {"value", true}, {"", false}}, {}};
  table.rows.push_back({"registers by thread", fmt::format("{}", kernel.registers),
                        kernel.registers_by_ptxas ? "by ptxas" : "estimated"});
  table.rows.push_back({"shared memory by block", fmt::format("{}", kernel.shared_bytes), "bytes"});
  for (const timing::TimeFigure& term : kernel.first.terms)
    table.rows.push_back({term.name, fmt::format("{:.6g}", term.value), std::string(term.unit)});
  return table.text();
}

bool is_sampled(const ScoredKernel& kernel) {
  return kernel.blocks_run < kernel.blocks;
}

std::string sample_text(const std::string& version, const ScoredKernel& kernel) {
  return fmt::format("{}, {}: {} of {} blocks ran; of the means over all, instructions are within {:.1f} % and sectors "
                     "within {:.1f} % (95 %)\n",
                     kernel.kernel, version, kernel.blocks_run, kernel.blocks, 100 * kernel.instruction_bound,
                     100 * kernel.sector_bound);
}

json kernel_json(const ScoredFile& file, const ScoredKernel& kernel, const ScoreReportOptions& options) {
  json stack = json::object();
  for (size_t i = 0; i < cause_count; ++i)
    if (kernel.stack[i] > 0) stack[std::string(timing::spelling(static_cast<Cause>(i)))] = kernel.stack[i];
  json one = {{"kernel", kernel.kernel},
              {"launches", kernel.launches},
              {"rewritten_launches", kernel.rewritten_launches},
              {"grid", {kernel.grid.x, kernel.grid.y, kernel.grid.z}},
              {"block", {kernel.block.x, kernel.block.y, kernel.block.z}},
              {"registers", kernel.registers},
              {"registers_by_ptxas", kernel.registers_by_ptxas},
              {"shared_bytes", kernel.shared_bytes},
              {"resident_warps", kernel.first.resident_warps},
              {"warp_instructions", kernel.instructions},
              {"ptx_warp_instructions", kernel.ptx_warp_instructions},
              {"ptx_thread_instructions", kernel.ptx_thread_instructions},
              {"clocks", kernel.clocks},
              {"seconds", kernel.seconds},
              {"cpi", cpi_of(kernel, *file.machine)},
              {"dram_bytes", kernel.dram_bytes},
              {"l2_bytes", kernel.l2_bytes},
              {"stack_clocks", std::move(stack)},
              {"energy", energy_json(kernel)}};
  if (const ScoredKernel* baseline = baseline_of(file, kernel); baseline && baseline != &kernel) {
    one["speedup"] = kernel.clocks > 0 ? baseline->clocks / kernel.clocks : 0;
    one["energy_sign"] = spelling(energy_sign(*baseline, kernel));
  }
  if (is_sampled(kernel))
    one["sample"] = {{"blocks", kernel.blocks},
                     {"blocks_run", kernel.blocks_run},
                     {"instruction_bound", kernel.instruction_bound},
                     {"sector_bound", kernel.sector_bound}};
  if (options.sensitivity) one["sensitivity"] = sensitivity_json(file, kernel.kernel);
  if (options.estimators) one["estimators"] = estimators_json(kernel);
  if (options.terms) {
    json terms = json::object();
    for (const timing::TimeFigure& term : kernel.first.terms)
      terms[term.name] = term.value;
    one["terms"] = std::move(terms);
  }
  return one;
}

} // namespace

std::string machine_title(const ScoredFile& file) {
  const std::string name(file.machine->name);
  return file.slice > 1 ? fmt::format("1/{} of {}", file.slice, name) : name;
}

const ScoredKernel* baseline_of(const ScoredFile& file, const ScoredKernel& kernel) {
  for (const ScoredKernel& one : file.versions.front().kernels)
    if (one.kernel == kernel.kernel) return &one;
  return nullptr;
}

std::string score_text(const ScoredFile& file, const ScoreReportOptions& options) {
  std::string out =
      fmt::format("{}{} on {}\n", file.file, file.size.empty() ? "" : " (" + file.size + ")", machine_title(file));
  out += summary_text(file);
  for (const ScoredVersion& version : file.versions)
    for (const ScoredKernel& kernel : version.kernels)
      if (is_sampled(kernel)) out += sample_text(version.name, kernel);
  if (options.stack)
    for (const ScoredKernel& kernel : file.versions.front().kernels)
      out += '\n' + stack_text(file, kernel);
  if (options.energy)
    for (const ScoredKernel& kernel : file.versions.front().kernels)
      out += '\n' + energy_text(file, kernel.kernel);
  if (options.sensitivity)
    for (const ScoredKernel& kernel : file.versions.front().kernels)
      out += '\n' + sensitivity_text(file, kernel.kernel);
  if (options.estimators)
    for (const ScoredKernel& kernel : file.versions.front().kernels)
      out += '\n' + estimators_text(file, kernel.kernel);
  if (options.terms)
    for (const ScoredVersion& version : file.versions)
      for (const ScoredKernel& kernel : version.kernels)
        out += '\n' + terms_text(version.name, kernel);
  if (options.cost)
    for (const ScoredVersion& version : file.versions)
      out += fmt::format("{}: run {:.3f} s, without the model's recorder {:.3f} s; model {:.3f} s\n", version.name,
                         version.functional_seconds, version.plain_seconds, version.model_seconds);
  return out;
}

json score_json(const ScoredFile& file, const ScoreReportOptions& options) {
  json versions = json::array();
  for (const ScoredVersion& version : file.versions) {
    json kernels = json::array();
    for (const ScoredKernel& kernel : version.kernels)
      kernels.push_back(kernel_json(file, kernel, options));
    json one = {{"version", version.name}, {"kernels", std::move(kernels)}};
    if (!version.remark.empty()) one["remark"] = version.remark;
    if (options.cost)
      one["cost"] = {{"run_seconds", version.functional_seconds},
                     {"plain_seconds", version.plain_seconds},
                     {"model_seconds", version.model_seconds}};
    versions.push_back(std::move(one));
  }
  return {{"file", file.file},
          {"size", file.size},
          {"gpu", file.machine->name},
          {"slice", file.slice},
          {"versions", std::move(versions)}};
}

} // namespace ptxrewrite::evaluate
