// The measurements of regless_tables for a sample, their invariants, and their tables.
#pragma once

#include "evaluate/score/score.h"
#include "tests/paper/measure.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

inline constexpr uint32_t paper_entries = 512;

// Regions of all kernels of a text.
struct StaticRegions {
  uint64_t regions = 0, instructions = 0; // machine instructions
};

struct RegLessRow {
  std::string sample;
  std::vector<evaluate::StagingConfiguration> configurations;
  std::vector<StaticRegions> text;                 // by configuration
  std::vector<emulator::StagingCounters> counters; // by configuration, all launches
  evaluate::ComparatorCounts comparators;
  evaluate::ScoredFile scored; // baseline, configurations, RFV, RFH, no register file
};

std::string staging_name(uint32_t entries, uint32_t compressor_lines);

Result<RegLessRow> measure_regless(const evaluate::LaunchInput& input, const std::string& sample,
                                   const ir::Machine& machine,
                                   const std::vector<evaluate::StagingConfiguration>& configurations);

// One sentence each.
std::vector<std::string> broken_rules(const RegLessRow& row);

// `today`: the same samples on a machine of today, or empty.
std::string regless_text(std::span<const RegLessRow> rows, std::span<const RegLessRow> today);
nlohmann::ordered_json regless_json(std::span<const RegLessRow> rows);

} // namespace ptxrewrite::tests
