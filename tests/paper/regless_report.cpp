// The tables of regless_tables, with the paper's figures beside ours.
#include "evaluate/score/score_regless.h"
#include "support/text/table.h"
#include "tests/paper/regless_rows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace ptxrewrite::tests {
namespace {

using json = nlohmann::ordered_json;
using emulator::PreloadSource;

// Static instructions per region and cycles that each was active (Table 2), by our samples' names.
struct Table2 {
  std::string_view sample;
  double instructions, cycles;
};
constexpr std::array table_2 = {
    Table2{"bplus_tree", 3.7, 150}, Table2{"backprop", 6.7, 323},   Table2{"bfs", 3.3, 60},
    Table2{"dwt2d", 9.5, 457},      Table2{"gaussian", 8.1, 1207},  Table2{"heartwall", 4.6, 32},
    Table2{"hotspot", 6.4, 75},     Table2{"hybridsort", 6.5, 379}, Table2{"kmeans", 3.9, 993},
    Table2{"lavamd", 7.5, 1601},    Table2{"leukocyte", 7.7, 297},  Table2{"lud", 16.0, 816},
    Table2{"mummergpu", 6.4, 240},  Table2{"myocyte", 9.3, 120},    Table2{"nn", 6.3, 940},
    Table2{"nw", 10.8, 78},         Table2{"pathfinder", 4.9, 72},  Table2{"particlefilter", 10.0, 20},
    Table2{"srad_v1", 9.1, 350},    Table2{"srad_v2", 6.9, 323},    Table2{"streamcluster", 4.3, 16},
};
const Table2* in_table_2(const std::string& sample) {
  const auto found = std::ranges::find(table_2, sample, &Table2::sample);
  return found == table_2.end() ? nullptr : &*found;
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}
double ratio(uint64_t part, uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

// The machine's counts for a sample in one configuration.
struct MachineFigures {
  double instructions = 0, cycles = 0; // per region: static; until the last write
  double inputs = 0, live = 0, deviation = 0;
  std::array<double, 4> from{};  // share of preloads: staged, compressor, L1, below
  double requests_per_cycle = 0; // of L1
  double window_kb = 0;          // accessed in 100 cycles
  double accesses_per_cycle = 0; // of a conventional register file
  double metadata = 0;           // over instructions
  double active_regions = 0;     // of an SM
};
MachineFigures figures_of(const RegLessRow& row, size_t configuration) {
  const emulator::StagingCounters& counts = row.counters[configuration];
  MachineFigures figures;
  figures.instructions = ratio(row.text[configuration].instructions, row.text[configuration].regions);
  figures.cycles = ratio(counts.whole_cycles, counts.regions);
  figures.inputs = ratio(counts.inputs, counts.regions);
  figures.live = ratio(counts.live, counts.regions);
  figures.deviation =
      std::sqrt(std::max(0.0, ratio(counts.live_squared, counts.regions) - figures.live * figures.live));
  uint64_t preloads = 0;
  for (size_t source = 0; source < figures.from.size(); ++source)
    preloads += counts.preloads[source];
  for (size_t source = 0; source < figures.from.size(); ++source)
    figures.from[source] = ratio(counts.preloads[source], preloads);
  figures.requests_per_cycle = ratio(counts.l1_requests(), counts.cycles);
  figures.window_kb = ratio(counts.window_registers, counts.windows) * 128 / 1024;
  figures.accesses_per_cycle = ratio(counts.reads + counts.writes, counts.cycles);
  figures.metadata = ratio(counts.metadata, counts.instructions);
  figures.active_regions = ratio(counts.active_cycles, counts.cycles);
  return figures;
}

// All kernels of a version, without the constant launch cost, as in the paper's simulator.
struct VersionSum {
  double clocks = 0, seconds = 0;
  ir::EventCounts events{};
  double registers(double read_pj, double write_pj) const {
    return events[static_cast<size_t>(ir::EnergyEvent::rf_read)] * read_pj +
           events[static_cast<size_t>(ir::EnergyEvent::rf_write)] * write_pj;
  }
};
VersionSum sum_of(const RegLessRow& row, std::string_view name) {
  const ir::Machine& machine = *row.scored.machine;
  VersionSum sum;
  const auto version = std::ranges::find(row.scored.versions, name, &evaluate::ScoredVersion::name);
  if (version == row.scored.versions.end()) return sum;
  for (const evaluate::ScoredKernel& kernel : version->kernels) {
    sum.clocks += kernel.clocks - timing::launch_cost(machine).constant.value * static_cast<double>(kernel.launches);
    for (size_t i = 0; i < ir::energy_event_count; ++i)
      sum.events[i] += kernel.events[i];
  }
  sum.seconds = sum.clocks / (machine.clock_mhz * 1e6);
  return sum;
}

// Relative to the baseline.
double run_time(const RegLessRow& row, std::string_view version) {
  return ratio(sum_of(row, version).clocks, sum_of(row, "baseline").clocks);
}
double register_energy(const RegLessRow& row, std::string_view version, double write_pj) {
  return ratio(sum_of(row, version).registers(timing::register_read_pj, write_pj),
               sum_of(row, "baseline").registers(timing::register_read_pj, write_pj));
}
double gpu_energy(const RegLessRow& row, std::string_view version, const ir::EnergySet& set) {
  const VersionSum now = sum_of(row, version), before = sum_of(row, "baseline");
  return ratio(timing::energy(set, now.events, now.seconds).all(),
               timing::energy(set, before.events, before.seconds).all());
}

// The mean over all samples, or over those of the paper.
template <class Of> double mean(std::span<const RegLessRow> rows, const Of& of, bool papers) {
  double sum = 0, count = 0;
  for (const RegLessRow& row : rows)
    if (!papers || in_table_2(row.sample)) sum += of(row), ++count;
  return ratio(sum, count);
}
template <class Of> double geometric_mean(std::span<const RegLessRow> rows, const Of& of, bool papers) {
  return std::exp(mean(
      rows, [&](const RegLessRow& row) { return std::log(of(row)); }, papers));
}

size_t paper_configuration(const RegLessRow& row) {
  for (size_t i = 0; i < row.configurations.size(); ++i)
    if (row.configurations[i].entries == paper_entries && row.configurations[i].compressor_lines) return i;
  return 0;
}

std::string per_cent(double share, int digits = 1) {
  return fmt::format("{:.{}f}", 100 * share, digits);
}
std::string change(double now_over_before) {
  return fmt::format("{:+.1f}", 100 * (now_over_before - 1));
}

// RFH's accesses of the main file relative to all accesses of a register file.
double main_file_share(const RegLessRow& row) {
  const emulator::HierarchyCounts& counts = row.comparators.hierarchy;
  const auto main = static_cast<size_t>(emulator::FileLevel::main);
  return ratio(counts.reads[main] + counts.writes[main], counts.registers_read + counts.registers_written);
}

std::string machine_table(std::span<const RegLessRow> rows) {
  TextTable table{{{"sample"},
                   {"insns", true},
                   {"paper", true},
                   {"cycles", true},
                   {"paper", true},
                   {"inputs", true},
                   {"live", true},
                   {"+-", true},
                   {"active", true},
                   {"notes %", true},
                   {"staged %", true},
                   {"compr. %", true},
                   {"L1 %", true},
                   {"below %", true},
                   {"L1/cycle", true},
                   {"KB", true},
                   {"RF", true},
                   {"RFH", true},
                   {"L1", true}},
                  {}};
  for (const RegLessRow& row : rows) {
    const MachineFigures figures = figures_of(row, paper_configuration(row));
    const Table2* paper = in_table_2(row.sample);
    table.rows.push_back({row.sample, fmt::format("{:.1f}", figures.instructions),
                          paper ? fmt::format("{:.1f}", paper->instructions) : "",
                          fmt::format("{:.0f}", figures.cycles), paper ? fmt::format("{:.0f}", paper->cycles) : "",
                          fmt::format("{:.1f}", figures.inputs), fmt::format("{:.1f}", figures.live),
                          fmt::format("{:.1f}", figures.deviation), fmt::format("{:.1f}", figures.active_regions),
                          per_cent(figures.metadata, 0), per_cent(figures.from[0]), per_cent(figures.from[1]),
                          per_cent(figures.from[2], 2), per_cent(figures.from[3], 3),
                          fmt::format("{:.4f}", figures.requests_per_cycle), fmt::format("{:.1f}", figures.window_kb),
                          fmt::format("{:.0f}", 100 * figures.accesses_per_cycle),
                          fmt::format("{:.0f}", 100 * figures.accesses_per_cycle * main_file_share(row)),
                          fmt::format("{:.2f}", 100 * figures.requests_per_cycle)});
  }
  return fmt::format(
             "RegLess's machine, {} entries of an SM: machine instructions per region in the text and cycles that "
             "it holds registers\n(Table 2), inputs and live registers per region that runs (Fig. 19), regions "
             "active on an SM, annotations per instruction,\nwhere preloads hit (Fig. 17), requests to L1 (Fig. "
             "18), KB of registers accessed in 100 cycles (Fig. 2), accesses in 100\ncycles of a register file, "
             "of RFH's main file and of L1 (Fig. 3)\n",
             rows[0].configurations[paper_configuration(rows[0])].entries) +
         table.text();
}

std::string time_table(std::span<const RegLessRow> rows) {
  const std::string& regless = rows[0].configurations[paper_configuration(rows[0])].name;
  const std::array<std::string_view, 3> versions = {regless, evaluate::rfv_name, evaluate::rfh_name};
  TextTable table{{{"sample"},
                   {"run time: RegLess", true},
                   {"RFV", true},
                   {"RFH", true},
                   {"register energy %: RegLess", true},
                   {"RFV", true},
                   {"RFH", true}},
                  {}};
  for (const RegLessRow& row : rows) {
    table.rows.push_back({row.sample});
    for (std::string_view version : versions)
      table.rows.back().push_back(fmt::format("{:.3f}", run_time(row, version)));
    for (std::string_view version : versions)
      table.rows.back().push_back(change(register_energy(row, version, timing::register_write_pj)));
  }
  return fmt::format("Against the register file, by the timing model of {} (Figs. 14 and 16)\n",
                     rows[0].scored.machine->name) +
         table.text();
}

std::string comparator_table(std::span<const RegLessRow> rows) {
  TextTable table{{{"sample"},
                   {"RFV: mapped", true},
                   {"most", true},
                   {"writes that get room %", true},
                   {"of 1024 %", true},
                   {"RFH reads %: last result", true},
                   {"operand", true},
                   {"main", true},
                   {"RFH writes %: last result", true},
                   {"operand", true},
                   {"main", true}},
                  {}};
  for (const RegLessRow& row : rows) {
    const auto& [renaming, hierarchy] = row.comparators;
    double resident = 0; // maximum warps per SM
    for (const evaluate::ScoredKernel& kernel : row.scored.versions.front().kernels)
      resident = std::max<double>(resident, kernel.first.resident_warps);
    const double mapped = ratio(renaming.mapped, renaming.instructions);
    table.rows.push_back({row.sample, fmt::format("{:.1f}", mapped), fmt::format("{}", renaming.most_mapped),
                          per_cent(ratio(renaming.allocations, renaming.writes), 0),
                          per_cent(mapped * resident / (row.scored.machine->occupancy.registers / 64.0), 0)});
    for (uint64_t reads : hierarchy.reads)
      table.rows.back().push_back(per_cent(ratio(reads, hierarchy.registers_read)));
    for (size_t level = 0; level < hierarchy.writes.size(); ++level)
      table.rows.back().push_back(
          per_cent(ratio(hierarchy.writes[level] + (level == 1 ? hierarchy.fills : 0), hierarchy.registers_written)));
  }
  return "RFV: registers of a warp that have room, mean by instruction and most; what as many warps as are resident "
         "have of its file.\nRFH: accesses by level, over those of a register file; reads of the main file that fill "
         "the "
         "operand file are writes there\n" +
         table.text();
}

std::string sweep_table(std::span<const RegLessRow> rows) {
  TextTable table{{{"entries"},
                   {"compressor lines", true},
                   {"run time", true},
                   {"worst", true},
                   {"on"},
                   {"compr. %", true},
                   {"L1 %", true},
                   {"below %", true},
                   {"L1/cycle", true},
                   {"registers %", true}},
                  {}};
  for (const ir::EnergySet& set : ir::energy_sets())
    table.columns.push_back({fmt::format("{} %", set.name), true});
  const std::vector<evaluate::StagingConfiguration>& configurations = rows[0].configurations;
  for (size_t i = 0; i < configurations.size(); ++i) {
    const std::string& name = configurations[i].name;
    const auto time = [&](const RegLessRow& row) { return run_time(row, name); };
    const auto worst = std::ranges::max_element(rows, {}, time);
    const auto from = [&](size_t source) {
      return mean(
          rows, [&](const RegLessRow& row) { return figures_of(row, i).from[source]; }, false);
    };
    table.rows.push_back(
        {fmt::format("{}", configurations[i].entries), fmt::format("{}", configurations[i].compressor_lines),
         fmt::format("{:.3f}", geometric_mean(rows, time, false)), fmt::format("{:.3f}", time(*worst)), worst->sample,
         per_cent(from(1)), per_cent(from(2), 2), per_cent(from(3), 3),
         fmt::format("{:.4f}",
                     mean(
                         rows, [&](const RegLessRow& row) { return figures_of(row, i).requests_per_cycle; }, false)),
         change(mean(
             rows, [&](const RegLessRow& row) { return register_energy(row, name, timing::register_write_pj); },
             false))});
    for (const ir::EnergySet& set : ir::energy_sets())
      table.rows.back().push_back(change(mean(
          rows, [&](const RegLessRow& row) { return gpu_energy(row, name, set); }, false)));
  }
  return "Capacity (Figs. 13 to 16): run time against the register file, geometric mean and the worst sample; preloads "
         "and "
         "requests, means;\nenergy of registers, and of the GPU by set of coefficients\n" +
         table.text();
}

class Summary {
public:
  // `today`: the same samples on another machine, for a column of its own; may be empty.
  Summary(std::span<const RegLessRow> rows, std::span<const RegLessRow> today) : rows_(rows), today_(today) {
    if (!today.empty())
      table_.columns.push_back({fmt::format("its benchmarks on {}", today[0].scored.machine->name), true});
  }

  // `text` of rows, of the paper's benchmarks alone or of all.
  template <class Of> void add(std::string figure, std::string paper, const Of& text) {
    const bool has_papers =
        std::ranges::any_of(rows_, [](const RegLessRow& row) { return in_table_2(row.sample) != nullptr; });
    table_.rows.push_back(
        {std::move(figure), std::move(paper), has_papers ? text(rows_, true) : "", text(rows_, false)});
    if (!today_.empty()) table_.rows.back().push_back(has_papers ? text(today_, true) : "");
  }
  template <class Of> void add_mean(std::string figure, std::string paper, const char* format, const Of& of) {
    add(std::move(figure), std::move(paper), [&](std::span<const RegLessRow> rows, bool papers) {
      return fmt::format(fmt::runtime(format), mean(rows, of, papers));
    });
  }
  std::string text() const { return table_.text(); }

private:
  std::span<const RegLessRow> rows_, today_;
  TextTable table_{{{"figure"}, {"paper", true}, {"its benchmarks here", true}, {"all samples", true}}, {}};
};

void add_machine_figures(Summary& table) {
  const auto over_paper = [](double MachineFigures::*ours, double Table2::*papers) {
    return [=](std::span<const RegLessRow> rows, bool papers_samples) {
      const auto over = [=](const RegLessRow& row) {
        const Table2* paper = in_table_2(row.sample);
        return paper ? figures_of(row, paper_configuration(row)).*ours / (paper->*papers) : 1;
      };
      return papers_samples ? fmt::format("{:.2f}", geometric_mean(rows, over, true)) : std::string();
    };
  };
  table.add("instructions per region, over the paper's (Table 2)", "1",
            over_paper(&MachineFigures::instructions, &Table2::instructions));
  table.add("cycles per region, over the paper's (Table 2)", "1", over_paper(&MachineFigures::cycles, &Table2::cycles));
  const auto machine = [](auto member) {
    return [=](const RegLessRow& row) { return member(figures_of(row, paper_configuration(row))); };
  };
  table.add_mean("preloads from L1, % (Fig. 17)", "0.9", "{:.2f}",
                 machine([](const MachineFigures& figures) { return 100 * figures.from[2]; }));
  table.add_mean("preloads from L2 or DRAM, % (Fig. 17)", "0.013", "{:.3f}",
                 machine([](const MachineFigures& figures) { return 100 * figures.from[3]; }));
  table.add_mean("L1 requests per cycle for registers (Fig. 18)", "< 0.02", "{:.4f}",
                 machine([](const MachineFigures& figures) { return figures.requests_per_cycle; }));
  table.add_mean("of 256 KB of registers, accessed in 100 cycles, % (Fig. 2)", "10 or less", "{:.1f}",
                 machine([](const MachineFigures& figures) { return 100 * figures.window_kb / 256; }));
}

std::string summary(std::span<const RegLessRow> rows, std::span<const RegLessRow> today) {
  const evaluate::StagingConfiguration& settings = rows[0].configurations[paper_configuration(rows[0])];
  const std::string regless = settings.name, bare = staging_name(settings.entries, 0);
  Summary table(rows, today);
  add_machine_figures(table);
  using Rows = std::span<const RegLessRow>;
  for (const auto& [version, paper] : {std::pair<std::string, const char*>{regless, "1.00"},
                                       {bare, "1.102"},
                                       {std::string(evaluate::rfv_name), "> RegLess"},
                                       {std::string(evaluate::rfh_name), "> RegLess"}})
    table.add(fmt::format("run time, {} (Fig. 16)", version), paper, [&](Rows of, bool papers) {
      return fmt::format("{:.3f}", geometric_mean(
                                       of, [&](const RegLessRow& row) { return run_time(row, version); }, papers));
    });
  struct EnergyRow {
    std::string version;
    const char *registers, *gpu;
  };
  const std::array energies = {EnergyRow{regless, "-75.3", "-11"},
                               EnergyRow{std::string(evaluate::rfv_name), "-45.2", "-3.7"},
                               EnergyRow{std::string(evaluate::rfh_name), "-62.0", "-2.9"},
                               EnergyRow{std::string(evaluate::no_file_name), "-100", "-16.7"}};
  for (const EnergyRow& row : energies)
    for (double write : {timing::register_write_pj, timing::register_write_pj_of_darsie})
      table.add(fmt::format("register energy, %, {}; {} pJ by read, {} by write (Fig. 14)", row.version,
                            timing::register_read_pj, write),
                row.registers, [&](Rows of, bool papers) {
                  return change(mean(
                      of, [&](const RegLessRow& one) { return register_energy(one, row.version, write); }, papers));
                });
  for (const EnergyRow& row : energies)
    for (const ir::EnergySet& set : ir::energy_sets())
      table.add(fmt::format("GPU energy, %, {}; {} (Fig. 15)", row.version, set.name), row.gpu,
                [&](Rows of, bool papers) {
                  return change(mean(
                      of, [&](const RegLessRow& one) { return gpu_energy(one, row.version, set); }, papers));
                });
  return table.text();
}

std::string outliers(std::span<const RegLessRow> rows) {
  std::string far;
  for (const RegLessRow& row : rows)
    if (const Table2* paper = in_table_2(row.sample)) {
      const double over = figures_of(row, paper_configuration(row)).instructions / paper->instructions;
      if (over < 1 / 1.5 || over > 1.5) far += fmt::format("{}{} {:.2f}", far.empty() ? "" : ", ", row.sample, over);
    }
  return fmt::format(
      "instructions per region outside of a factor of 1.5 of Table 2: {} (the machine here runs blocks of the "
      "text; ninja region_table has the paper's)\n",
      far.empty() ? "none" : far);
}

// The number of samples in which all sets of coefficients agree that a version takes less, or more, GPU energy.
std::string signs(std::span<const RegLessRow> rows, const std::string& version) {
  size_t less = 0, more = 0;
  for (const RegLessRow& row : rows) {
    bool all_less = true, all_more = true;
    for (const ir::EnergySet& set : ir::energy_sets()) {
      const double energy = gpu_energy(row, version, set);
      constexpr double same = 1e-9; // sets without coefficients for registers
      all_less = all_less && energy <= 1 + same;
      all_more = all_more && energy >= 1 - same;
    }
    less += all_less && !all_more;
    more += all_more && !all_less;
  }
  return fmt::format("GPU energy of {}: less in all sets in {} samples, more in {}, sets disagree in {}\n", version,
                     less, more, rows.size() - less - more);
}

constexpr std::string_view rules =
    "Energy of entries, tags, compressors and smaller files: by their bits over those of the register file (RegLess "
    "6.2 "
    "finds that\nit grows with capacity); 16 bits a tag, 3 bits a register of the compressor's state. Guesses: 8 "
    "active "
    "warps of a scheduler\n(RFV, RFH), 8 entries of an active warp (RFH); the GTX 980's figures that `score "
    "--sensitivity` shows.\n";

} // namespace

std::string regless_text(std::span<const RegLessRow> rows, std::span<const RegLessRow> today) {
  std::string text;
  for (const auto& part : {machine_table, time_table, comparator_table, sweep_table})
    text += part(rows) + '\n';
  if (!today.empty()) text += time_table(today) + '\n';
  text += summary(rows, today) + '\n';
  for (const std::string& version : {rows[0].configurations[paper_configuration(rows[0])].name,
                                     std::string(evaluate::rfv_name), std::string(evaluate::rfh_name)})
    text += signs(rows, version);
  return text + outliers(rows) + std::string(rules);
}

json regless_json(std::span<const RegLessRow> rows) {
  json list = json::array();
  for (const RegLessRow& row : rows) {
    json one = {{"sample", row.sample}};
    for (size_t i = 0; i < row.configurations.size(); ++i) {
      json machine = {{"entries", row.configurations[i].entries},
                      {"compressor_lines", row.configurations[i].compressor_lines},
                      {"static_regions", row.text[i].regions},
                      {"static_instructions", row.text[i].instructions}};
      for (const emulator::StagingCount& count : emulator::named_counts(row.counters[i]))
        machine["counts"][count.name] = count.count;
      one["configurations"].push_back(std::move(machine));
    }
    for (const evaluate::ScoredVersion& version : row.scored.versions) {
      json figures = {{"clocks", sum_of(row, version.name).clocks},
                      {"run_time", run_time(row, version.name)},
                      {"register_energy", register_energy(row, version.name, timing::register_write_pj)}};
      for (const ir::EnergySet& set : ir::energy_sets())
        figures["gpu_energy"][std::string(set.name)] = gpu_energy(row, version.name, set);
      one["versions"][version.name] = std::move(figures);
    }
    list.push_back(std::move(one));
  }
  return {{"machine", rows.empty() ? "" : rows[0].scored.machine->name}, {"rows", std::move(list)}};
}

} // namespace ptxrewrite::tests
