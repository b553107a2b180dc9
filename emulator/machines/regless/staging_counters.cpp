#include "emulator/machines/regless/staging_counters.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

struct NamedMember {
  std::string_view name;
  uint64_t StagingCounters::*member;
};
constexpr NamedMember members[] = {
    {"cycles", &StagingCounters::cycles},
    {"instructions", &StagingCounters::instructions},
    {"instructions that carry annotations", &StagingCounters::metadata},
    {"regions", &StagingCounters::regions},
    {"instructions of their regions", &StagingCounters::region_instructions},
    {"cycles of active regions", &StagingCounters::active_cycles},
    {"cycles until all was written", &StagingCounters::whole_cycles},
    {"inputs of regions", &StagingCounters::inputs},
    {"concurrent live registers of regions", &StagingCounters::live},
    {"squares of these", &StagingCounters::live_squared},
    {"invalidations", &StagingCounters::invalidations},
    {"registers written back", &StagingCounters::written_back},
    {"of them compressed", &StagingCounters::compressed},
    {"L1 loads", &StagingCounters::l1_loads},
    {"L1 stores", &StagingCounters::l1_stores},
    {"requests below L1", &StagingCounters::below_l1},
    {"of them lines read", &StagingCounters::read_below_l1},
    {"operand reads", &StagingCounters::reads},
    {"operand writes", &StagingCounters::writes},
    {"entries read for write-back", &StagingCounters::entry_reads},
    {"entries written by preloads", &StagingCounters::entry_writes},
    {"tag lookups", &StagingCounters::tag_lookups},
    {"windows of 100 cycles", &StagingCounters::windows},
    {"registers accessed in windows", &StagingCounters::window_registers},
    {"instructions issued in pairs", &StagingCounters::dual_issues},
    {"cycles that operands waited for banks", &StagingCounters::operand_waits},
    {"cycles that preloads waited for tags", &StagingCounters::preload_waits},
    {"cycles that waited for miss registers", &StagingCounters::miss_register_waits},
    {"cycles that waited for room", &StagingCounters::activation_waits},
};
constexpr std::array<std::string_view, preload_sources> source_names = {
    "preloads staged already", "preloads from the compressor", "preloads from L1", "preloads from below L1",
    "preloads of nothing"};

} // namespace

StagingCounters& StagingCounters::operator+=(const StagingCounters& other) {
  for (const NamedMember& row : members)
    this->*row.member += other.*row.member;
  for (size_t i = 0; i < preloads.size(); ++i)
    preloads[i] += other.preloads[i];
  by_region.resize(std::max(by_region.size(), other.by_region.size()));
  for (size_t i = 0; i < other.by_region.size(); ++i) {
    by_region[i].runs += other.by_region[i].runs;
    by_region[i].active_cycles += other.by_region[i].active_cycles;
    by_region[i].whole_cycles += other.by_region[i].whole_cycles;
    by_region[i].dropped |= other.by_region[i].dropped;
    by_region[i].lookups += other.by_region[i].lookups;
    by_region[i].operand_waits += other.by_region[i].operand_waits;
    for (size_t source = 0; source < preload_sources; ++source)
      by_region[i].slowest[source] += other.by_region[i].slowest[source];
  }
  return *this;
}

std::vector<StagingCount> named_counts(const StagingCounters& counters) {
  std::vector<StagingCount> rows;
  for (const NamedMember& row : members)
    rows.push_back({row.name, counters.*row.member});
  for (size_t i = 0; i < preload_sources; ++i)
    rows.push_back({source_names[i], counters.preloads[i]});
  return rows;
}

} // namespace ptxrewrite::emulator
