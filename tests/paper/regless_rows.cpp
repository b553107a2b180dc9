// One sample, and the rules that hold for it; its tables are in regless_report.cpp.
#include "tests/paper/regless_rows.h"

#include "evaluate/score/score_regless.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ptxrewrite::tests {
namespace {

StaticRegions regions_of(const ir::Module& module, const ir::Machine& machine, uint32_t entries) {
  StaticRegions sum;
  for (const auto& function : module.functions) {
    if (!function->is_entry || !function->has_body) continue;
    const auto plan = transforms::plan_regless(*function, evaluate::regless_options(machine, entries));
    if (!plan) continue;
    sum.regions += plan->regions.size();
    for (const ir::Region& region : plan->regions)
      sum.instructions += region.weight;
  }
  return sum;
}

const evaluate::ScoredVersion* version_of(const RegLessRow& row, std::string_view name) {
  const auto found = std::ranges::find(row.scored.versions, name, &evaluate::ScoredVersion::name);
  return found == row.scored.versions.end() ? nullptr : &*found;
}

// Checks the requests that leave the unit, and their destinations.
void check_counts(const RegLessRow& row, size_t configuration, std::vector<std::string>& broken) {
  const emulator::StagingCounters& counts = row.counters[configuration];
  const std::string& name = row.configurations[configuration].name;
  auto rule = [&](bool holds, std::string_view what) {
    if (!holds) broken.push_back(fmt::format("{}: {}", name, what));
  };
  uint64_t preloads = 0;
  for (uint64_t count : counts.preloads)
    preloads += count;
  rule(preloads == counts.inputs, "preloads by where they hit are not the inputs of regions");
  rule(counts.region_instructions >= counts.instructions, "more instructions issue than regions have");
  rule(counts.compressed <= counts.written_back, "more registers are compressed than leave the unit");
  rule(counts.entry_writes <= counts.inputs, "more entries are filled than preloads ask for");
  rule(counts.read_below_l1 <= counts.below_l1, "more lines come from below L1 than are asked for there");
  rule(counts.tag_lookups == counts.reads + counts.writes + counts.inputs, "tags are not looked up once by access");
  rule(row.configurations[configuration].compressor_lines > 0 || counts.compressed == 0,
       "registers are compressed without compressor");
}

void check_comparators(const RegLessRow& row, std::vector<std::string>& broken) {
  const auto& [renaming, hierarchy] = row.comparators;
  const auto sum = [](const auto& levels) { return levels[0] + levels[1] + levels[2]; };
  if (sum(hierarchy.reads) != hierarchy.registers_read) broken.push_back("RFH: not every read is of one file");
  if (sum(hierarchy.writes) < hierarchy.registers_written) broken.push_back("RFH: results that are written nowhere");
  if (hierarchy.writes[2] > hierarchy.registers_written) broken.push_back("RFH: more is written to the main file");
  if (renaming.reads != hierarchy.registers_read || renaming.writes != hierarchy.registers_written)
    broken.push_back("RFV and RFH access different registers");
  if (renaming.mapped < std::max(renaming.reads, renaming.writes))
    broken.push_back("RFV: registers are accessed that have no room");
}

void check_events(const RegLessRow& row, std::vector<std::string>& broken) {
  for (const evaluate::ScoredVersion& version : row.scored.versions)
    for (const evaluate::ScoredKernel& kernel : version.kernels) {
      double largest = 0;
      for (double count : kernel.events)
        largest = std::max(largest, std::abs(count));
      for (double count : kernel.events)
        if (count < -1e-9 * largest)
          broken.push_back(fmt::format("{}, {}: events that are less than none", version.name, kernel.kernel));
      double parts = 0;
      for (double clocks : kernel.stack)
        parts += clocks;
      if (std::abs(parts - kernel.clocks) > 1e-6 * kernel.clocks)
        broken.push_back(fmt::format("{}, {}: the CPI stack is not the time", version.name, kernel.kernel));
    }
}

} // namespace

std::string staging_name(uint32_t entries, uint32_t compressor_lines) {
  return compressor_lines ? fmt::format("{} entries, {} lines", entries, compressor_lines)
                          : fmt::format("{} entries, no compressor", entries);
}

Result<RegLessRow> measure_regless(const evaluate::LaunchInput& input, const std::string& sample,
                                   const ir::Machine& machine,
                                   const std::vector<evaluate::StagingConfiguration>& configurations) {
  RegLessRow row;
  row.sample = sample;
  row.configurations = configurations;
  for (const evaluate::StagingConfiguration& configuration : configurations)
    row.text.push_back(regions_of(*input.module, machine, configuration.entries));
  evaluate::ScoreSettings settings{.machine = machine, .passes = {}, .regless = configurations, .changes = {}};
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  Result<evaluate::ScoreRun> run = evaluate::score(input, settings, place);
  if (!run) return run.error();
  if (run->failure) return Error{run->failure->to_diagnostic().message, {}};
  row.comparators = run->comparators;
  row.scored = std::move(run->scored);
  for (const evaluate::StagingConfiguration& configuration : configurations)
    row.counters.push_back(version_of(row, configuration.name)->staging);
  return row;
}

std::vector<std::string> broken_rules(const RegLessRow& row) {
  std::vector<std::string> broken;
  for (size_t i = 0; i < row.configurations.size(); ++i)
    check_counts(row, i, broken);
  check_comparators(row, broken);
  check_events(row, broken);
  const evaluate::ScoredVersion& baseline = row.scored.versions.front();
  for (const evaluate::ScoredVersion& version : row.scored.versions)
    for (const evaluate::ScoredKernel& kernel : version.kernels) {
      const auto before = std::ranges::find(baseline.kernels, kernel.kernel, &evaluate::ScoredKernel::kernel);
      if (kernel.clocks < before->clocks * (1 - 1e-9))
        broken.push_back(
            fmt::format("{}, {}: faster than a register file that holds everything", version.name, kernel.kernel));
    }
  const evaluate::ScoredVersion* without = version_of(row, evaluate::no_file_name);
  for (const evaluate::ScoredKernel& kernel : without->kernels)
    for (ir::EnergyEvent event : {ir::EnergyEvent::rf_read, ir::EnergyEvent::rf_write})
      if (std::abs(kernel.events[static_cast<size_t>(event)]) > 1e-6)
        broken.push_back("accesses of a register file that is not there");
  return broken;
}

} // namespace ptxrewrite::tests
