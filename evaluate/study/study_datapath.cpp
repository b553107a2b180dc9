#include "evaluate/study/study_datapath.h"

#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <string_view>

namespace ptxrewrite::evaluate {
namespace {

using emulator::DatapathCounts;
using json = nlohmann::ordered_json;

// Energy of one access by a whole warp, in pJ (composite-hpca13 Table 4): eight accesses of 128 bits to the main file,
// or of 64 bits to one slice; one access to the scalar file.
constexpr double main_picojoules = 8 * 28, slice_picojoules = 8 * 14, scalar_picojoules = 1.4;

double picojoules(const emulator::RegisterAccesses& accesses) {
  return main_picojoules * static_cast<double>(accesses.full) + slice_picojoules * static_cast<double>(accesses.half) +
         scalar_picojoules * static_cast<double>(accesses.scalar);
}

double share(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// One access by a whole warp to the composite register file: 32 bits in each lane.
constexpr double composite_read_picojoules = 32 * 0.71, composite_write_picojoules = 32 * 0.74;

double composite_picojoules_saved(const emulator::CompositeCounts& composites) {
  return main_picojoules * static_cast<double>(composites.main_writes_avoided + composites.main_reads_avoided) -
         composite_read_picojoules * static_cast<double>(composites.slot_reads) -
         composite_write_picojoules * static_cast<double>(composites.slot_writes);
}

struct RegisterFileRow {
  std::string_view name;
  emulator::RegisterAccesses accesses;
};
std::array<RegisterFileRow, 4> register_file_rows(const DatapathCounts& counts) {
  return {{{"baseline", {.full = counts.accesses()}},
           {"scalar", counts.with_scalar},
           {"sliced", counts.with_slices},
           {"both", counts.with_both}}};
}

struct NamedShare {
  std::string_view name;
  double (*of)(const DatapathCounts&);
};
constexpr NamedShare named_shares[] = {
    {"instructions with the same result in all lanes", redundant_share},
    {"16-bit instructions", [](const DatapathCounts& counts) { return share(counts.narrow, counts.instructions); }},
    {"stalls: results of 16-bit instructions that are wider", stall_share},
    {"register reads of 16 bits", [](const DatapathCounts& counts) { return share(counts.half_reads, counts.reads); }},
    {"register writes of 16 bits",
     [](const DatapathCounts& counts) { return share(counts.half_writes, counts.writes); }},
};

} // namespace

double redundant_share(const DatapathCounts& counts) {
  return share(counts.redundant, counts.instructions);
}
double stall_share(const DatapathCounts& counts) {
  return share(counts.stalls, counts.instructions);
}
double register_energy_saved(const DatapathCounts& counts) {
  const double baseline = main_picojoules * static_cast<double>(counts.accesses());
  return baseline > 0 ? 1 - picojoules(counts.with_both) / baseline : 0;
}

std::string datapath_text(const DatapathCounts& counts, const emulator::CompositeCounts& composites) {
  TextTable files{{{"register files", false},
                   {"main", true},
                   {"one slice", true},
                   {"scalar", true},
                   {"energy nJ", true},
                   {"of baseline %", true}},
                  {}};
  const std::array<RegisterFileRow, 4> rows = register_file_rows(counts);
  const double baseline = picojoules(rows[0].accesses);
  for (const RegisterFileRow& row : rows) {
    const double energy = picojoules(row.accesses);
    files.rows.push_back({std::string(row.name), fmt::format("{}", row.accesses.full),
                          fmt::format("{}", row.accesses.half), fmt::format("{}", row.accesses.scalar),
                          fmt::format("{:.0f}", energy / 1000),
                          fmt::format("{:.1f}", baseline > 0 ? 100 * energy / baseline : 0)});
  }
  TextTable shares{{{"shares (composite Fig. 1, 5.2)", false}, {"%", true}}, {}};
  for (const NamedShare& one : named_shares)
    shares.rows.push_back({std::string(one.name), fmt::format("{:.1f}", 100 * one.of(counts))});
  std::string text = files.text() + '\n' + shares.text();
  if (composites.composites)
    text += fmt::format("composites: {} by warps; their register file: {} writes, {} reads; the main one is spared {} "
                        "writes, {} reads; {:.0f} nJ less\n",
                        composites.composites, composites.slot_writes, composites.slot_reads,
                        composites.main_writes_avoided, composites.main_reads_avoided,
                        composite_picojoules_saved(composites) / 1000);
  return text;
}

json datapath_json(const DatapathCounts& counts, const emulator::CompositeCounts& composites) {
  json document;
  for (const NamedShare& one : named_shares)
    document["shares"][std::string(one.name)] = std::round(one.of(counts) * 1e6) / 1e6;
  for (const RegisterFileRow& row : register_file_rows(counts))
    document["register_files"][std::string(row.name)] = {{"main", row.accesses.full},
                                                         {"one_slice", row.accesses.half},
                                                         {"scalar", row.accesses.scalar},
                                                         {"picojoules", std::round(picojoules(row.accesses))}};
  if (composites.composites)
    document["composites"] = {{"executed", composites.composites},
                              {"slot_writes", composites.slot_writes},
                              {"slot_reads", composites.slot_reads},
                              {"main_writes_avoided", composites.main_writes_avoided},
                              {"main_reads_avoided", composites.main_reads_avoided},
                              {"picojoules_saved", std::round(composite_picojoules_saved(composites))}};
  return document;
}

} // namespace ptxrewrite::evaluate
