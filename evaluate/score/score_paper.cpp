#include "evaluate/score/score_paper.h"

#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;

constexpr Paper papers[] = {
#define PAPER(name, machine, passes, darsie, regless, sliced, comparators, l1_kib, by_bound)                           \
  {name, machine, passes, darsie, regless, sliced, comparators, l1_kib, by_bound},
#define PAPER_FIGURE(paper, version, measure, files, reported, what)
#define PAPER_BENCHMARKS(paper, samples)
#include "evaluate/score/score_paper.def"
#undef PAPER
#undef PAPER_FIGURE
#undef PAPER_BENCHMARKS
};

constexpr PaperTimeFigure figures[] = {
#define PAPER(name, machine, passes, darsie, regless, sliced, comparators, l1_kib, by_bound)
#define PAPER_FIGURE(paper, version, measure, files, reported, what)                                                   \
  {paper, version, PaperMeasure::measure, PaperFiles::files, reported, what},
#define PAPER_BENCHMARKS(paper, samples)
#include "evaluate/score/score_paper.def"
#undef PAPER
#undef PAPER_FIGURE
#undef PAPER_BENCHMARKS
};

struct Benchmarks {
  std::string_view paper, samples;
};
constexpr Benchmarks benchmarks[] = {
#define PAPER(name, machine, passes, darsie, regless, sliced, comparators, l1_kib, by_bound)
#define PAPER_FIGURE(paper, version, measure, files, reported, what)
#define PAPER_BENCHMARKS(paper, samples) {paper, samples},
#include "evaluate/score/score_paper.def"
#undef PAPER
#undef PAPER_FIGURE
#undef PAPER_BENCHMARKS
};

const ScoredVersion* version_of(const ScoredFile& file, std::string_view name) {
  const auto found = std::ranges::find(file.versions, name, &ScoredVersion::name);
  return found == file.versions.end() ? nullptr : &*found;
}

// Sum over all kernels of a version.
struct VersionSum {
  double clocks = 0, powered_seconds = 0, instructions = 0, multi_dimensional_clocks = 0;
  ir::EventCounts events{};
};
VersionSum sum_of(const ScoredVersion& version, const ScoredFile& file) {
  const ir::Machine& machine = *file.machine;
  VersionSum sum;
  const double constant = timing::launch_cost(machine).constant.value;
  for (const ScoredKernel& kernel : version.kernels) {
    const double clocks = kernel.clocks - constant * static_cast<double>(kernel.launches);
    sum.clocks += clocks;
    if (kernel.block.y > 1 || kernel.block.z > 1) sum.multi_dimensional_clocks += clocks;
    sum.instructions += kernel.instructions;
    for (size_t i = 0; i < ir::energy_event_count; ++i)
      sum.events[i] += kernel.events[i];
  }
  sum.powered_seconds = sum.clocks / (machine.clock_mhz * 1e6) / file.slice;
  return sum;
}

double energy_part(PaperMeasure measure, const timing::Energy& energy) {
  switch (measure) {
  case PaperMeasure::less_front_end:
    return energy.front_end;
  case PaperMeasure::less_register_energy:
    return energy.registers;
  case PaperMeasure::less_unit_energy:
    return energy.units;
  case PaperMeasure::less_sm_energy:
    return energy.front_end + energy.registers + energy.units;
  default:
    return energy.all();
  }
}

bool is_memory_bound(const ScoredFile& file, double clocks) {
  if (!file.has_perfect_memory) return false;
  const double constant = timing::launch_cost(*file.machine).constant.value;
  double perfect = 0;
  for (const ScoredKernel& kernel : file.versions.front().kernels)
    perfect += kernel.clocks_if.back() - constant * static_cast<double>(kernel.launches);
  return clocks >= memory_bound_speedup * perfect;
}

bool is_integer(const ir::EventCounts& events) {
  using enum ir::EnergyEvent;
  double floating = 0, integer = 0;
  for (ir::EnergyEvent event : {fp32, fp_mul, fp64, dp_mul, sqrt, lg2, sin, ex2, tensor})
    floating += events[static_cast<size_t>(event)];
  for (ir::EnergyEvent event : {int_alu, int_mul})
    integer += events[static_cast<size_t>(event)];
  return floating * 20 < floating + integer;
}

// Mean fraction of energy saved under one set, or power efficiency; sets without the quantity are ignored.
bool mean_energy_saved(const PaperTimeFigure& figure, std::span<const ScoredFile* const> files,
                       const ir::EnergySet& set, double& mean) {
  double sum = 0;
  const bool is_ratio = figure.measure == PaperMeasure::power_efficiency;
  for (const ScoredFile* file : files) {
    const VersionSum before = sum_of(file->versions.front(), *file);
    const VersionSum now = sum_of(*version_of(*file, figure.version), *file);
    const double base = energy_part(figure.measure, timing::energy(set, before.events, before.powered_seconds));
    if (base <= 0) return false;
    const double share = energy_part(figure.measure, timing::energy(set, now.events, now.powered_seconds)) / base;
    sum += is_ratio ? -std::log(share) : 1 - share;
  }
  mean = sum / static_cast<double>(files.size());
  if (is_ratio) mean = std::exp(mean) / 100; // not in per cent
  return true;
}

// Is the figure a counter of RegLess's machine?
bool is_of_staging(PaperMeasure measure) {
  return measure >= PaperMeasure::preloads_from_l1 && measure <= PaperMeasure::l1_requests;
}
double staging_figure(PaperMeasure measure, const emulator::StagingCounters& counts) {
  uint64_t part = counts.l1_requests(), whole = counts.cycles;
  if (measure != PaperMeasure::l1_requests) {
    const auto source =
        measure == PaperMeasure::preloads_from_l1 ? emulator::PreloadSource::l1 : emulator::PreloadSource::memory;
    part = 100 * counts.preloads[static_cast<size_t>(source)];
    whole = counts.inputs;
  }
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Ratios are shown with more digits than percentages.
int digits_of(PaperMeasure measure) {
  return measure == PaperMeasure::speedup || measure == PaperMeasure::power_efficiency || is_of_staging(measure) ? 3
                                                                                                                 : 1;
}

std::string figure_text(double value, PaperMeasure measure) {
  return fmt::format("{:.{}f}", value, digits_of(measure));
}

std::string ours_text(const OurFigure& ours, PaperMeasure measure) {
  if (ours.files == 0) return "no file";
  const std::string least = figure_text(ours.least, measure), most = figure_text(ours.most, measure);
  return least == most ? least : least + " .. " + most;
}

std::string difference_text(const PaperTimeFigure& figure, const OurFigure& ours) {
  if (ours.files == 0) return "";
  const double low = ours.least - figure.reported, high = ours.most - figure.reported;
  const int digits = digits_of(figure.measure);
  const std::string least = fmt::format("{:+.{}f}", low, digits), most = fmt::format("{:+.{}f}", high, digits);
  return least == most ? least : least + " .. " + most;
}

} // namespace

std::span<const Paper> papers_of_score() {
  return papers;
}

ir::Machine machine_of(const Paper& paper, const ir::Machine& machine) {
  ir::Machine changed = machine;
  if (paper.l1_kib) changed.memory.l1_kib.value = paper.l1_kib;
  return changed;
}

timing::TimedMachine with_perfect_memory(const ir::Machine& machine) {
  timing::TimedMachine changed{machine, timing::launch_cost(machine)};
  for (ir::Figure* latency : {&changed.machine.latency.l1, &changed.machine.latency.l2, &changed.machine.latency.dram})
    latency->value = 1;
  changed.machine.memory.achieved_dram_gb_per_second.value *= 1e6;
  changed.machine.memory.l2_bytes_per_clock.known = false;
  changed.machine.memory.outstanding_misses.known = false;
  return changed;
}

const Paper* find_paper(std::string_view name) {
  const auto found = std::ranges::find(papers, name, &Paper::name);
  return found == std::end(papers) ? nullptr : &*found;
}

std::span<const PaperTimeFigure> paper_time_figures() {
  return figures;
}

bool is_counted(PaperFiles files, const FileGain& gain) {
  switch (files) {
  case PaperFiles::multi_dimensional:
    return gain.multi_dimensional;
  case PaperFiles::compute_bound:
    return !gain.memory_bound;
  case PaperFiles::memory_bound:
    return gain.memory_bound;
  case PaperFiles::integer:
    return gain.integer;
  case PaperFiles::floating_point:
    return !gain.integer;
  default:
    return true;
  }
}

bool is_benchmark(const Paper& paper, std::string_view file) {
  const std::string name = " " + std::filesystem::path(file).stem().string() + " ";
  const auto found = std::ranges::find(benchmarks, paper.name, &Benchmarks::paper);
  return (" " + std::string(found->samples) + " ").find(name) != std::string::npos;
}

bool gain_of(const ScoredFile& file, std::string_view version, FileGain& gain) {
  const ScoredVersion* found = version_of(file, version);
  if (!found) return false;
  const VersionSum before = sum_of(file.versions.front(), file), now = sum_of(*found, file);
  if (before.clocks <= 0 || now.clocks <= 0 || before.instructions <= 0) return false;
  gain = {before.clocks / now.clocks, 1 - now.instructions / before.instructions,
          before.multi_dimensional_clocks * 2 > before.clocks, is_memory_bound(file, before.clocks),
          is_integer(before.events)};
  return true;
}

OurFigure our_figure(const PaperTimeFigure& figure, std::span<const ScoredFile> files) {
  OurFigure ours;
  std::vector<const ScoredFile*> counted;
  double log_speedups = 0, fewer = 0;
  for (const ScoredFile& file : files) {
    FileGain gain;
    if (!gain_of(file, figure.version, gain)) continue;
    if (!is_counted(figure.files, gain)) continue;
    counted.push_back(&file);
    log_speedups += std::log(gain.speedup);
    fewer += gain.fewer_instructions;
  }
  ours.files = counted.size();
  if (counted.empty()) return ours;
  const auto count = static_cast<double>(counted.size());
  if (figure.measure == PaperMeasure::speedup) {
    ours.least = ours.most = std::exp(log_speedups / count);
  } else if (figure.measure == PaperMeasure::fewer_instructions) {
    ours.least = ours.most = 100 * fewer / count;
  } else if (is_of_staging(figure.measure)) {
    double sum = 0;
    for (const ScoredFile* file : counted)
      sum += staging_figure(figure.measure, version_of(*file, figure.version)->staging);
    ours.least = ours.most = sum / count;
  } else {
    ours.least = HUGE_VAL, ours.most = -HUGE_VAL;
    for (const ir::EnergySet& set : ir::energy_sets()) {
      double mean = 0;
      if (!mean_energy_saved(figure, counted, set, mean)) continue;
      ours.least = std::min(ours.least, 100 * mean);
      ours.most = std::max(ours.most, 100 * mean);
    }
  }
  return ours;
}

namespace {

// "DRAM bandwidth 97 %", excluding the constant cost of launches.
std::string largest_part(const ScoredFile& file) {
  const double constant = timing::launch_cost(*file.machine).constant.value;
  timing::CauseClocks stack{};
  double all = 0;
  for (const ScoredKernel& kernel : file.versions.front().kernels)
    for (size_t i = 0; i < timing::cause_count; ++i) {
      const bool launch = static_cast<timing::Cause>(i) == timing::Cause::launch;
      const double clocks = kernel.stack[i] - (launch ? constant * static_cast<double>(kernel.launches) : 0);
      stack[i] += clocks;
      all += clocks;
    }
  const auto largest = std::ranges::max_element(stack);
  return fmt::format("{} {:.0f} %", spelling(static_cast<timing::Cause>(largest - stack.begin())),
                     all > 0 ? 100 * *largest / all : 0);
}

// Speed-ups by file, and the other measures of the paper's figures if a version has them.
TextTable table_by_file(const Paper& paper, std::span<const ScoredFile> files) {
  TextTable table{{{"file", false}}, {}};
  for (const ScoredFile& file : files)
    table.rows.push_back({file.file});
  if (paper.by_bound) {
    table.columns.push_back({"bound by", false});
    for (size_t i = 0; i < files.size(); ++i) {
      FileGain gain;
      const bool known = gain_of(files[i], files[i].versions.front().name, gain);
      table.rows[i].emplace_back(known && gain.memory_bound ? "memory" : "computing");
    }
  }
  if (std::ranges::any_of(figures, [&](const PaperTimeFigure& figure) {
        return figure.paper == paper.name && figure.files == PaperFiles::integer;
      })) {
    table.columns.push_back({"kind", false});
    for (size_t i = 0; i < files.size(); ++i) {
      FileGain gain;
      const bool known = gain_of(files[i], files[i].versions.front().name, gain);
      table.rows[i].emplace_back(known && gain.integer ? "INT" : "FP");
    }
  }
  std::vector<std::string_view> versions;
  for (const PaperTimeFigure& figure : figures)
    if (figure.paper == paper.name && std::ranges::find(versions, figure.version) == versions.end())
      versions.push_back(figure.version);
  const auto add = [&](std::string title, const auto& text) {
    table.columns.push_back({std::move(title), true});
    for (size_t i = 0; i < files.size(); ++i)
      table.rows[i].push_back(text(files[i]));
  };
  for (std::string_view version : versions) {
    FileGain gain;
    add(fmt::format("{}: speed-up", version), [&](const ScoredFile& file) {
      return gain_of(file, version, gain) ? fmt::format("{:.3f}", gain.speedup) : "-";
    });
    const auto executes_fewer = [&](const ScoredFile& file) {
      return !gain_of(file, version, gain) || gain.fewer_instructions != 0;
    };
    if (std::ranges::any_of(files, executes_fewer))
      add("fewer instructions %", [&](const ScoredFile& file) {
        return gain_of(file, version, gain) ? fmt::format("{:.1f}", 100 * gain.fewer_instructions) : "-";
      });
    for (const PaperTimeFigure& figure : figures)
      if (figure.paper == paper.name && figure.version == version &&
          figure.measure == PaperMeasure::less_register_energy)
        add("less register energy %", [&](const ScoredFile& file) {
          return ours_text(our_figure(figure, {&file, 1}), figure.measure);
        });
  }
  add("most of the baseline is", largest_part);
  return table;
}

} // namespace

namespace {

// The groups of files that are compared with a paper's figures.
struct Kinds {
  std::vector<ScoredFile> ours, benchmarks; // all files, and those that are its benchmarks
  std::vector<ScoredFile> whole;            // all files on the whole machine, if `ours` are on slices
};
Kinds kinds_of(const Paper& paper, std::span<const ScoredFile> files) {
  const bool sliced = std::ranges::any_of(files, [](const ScoredFile& file) { return file.as_dense; });
  Kinds kinds;
  for (const ScoredFile& file : files) {
    if (sliced && !file.as_dense) {
      kinds.whole.push_back(file);
      continue;
    }
    kinds.ours.push_back(file);
    if (is_benchmark(paper, file.file)) kinds.benchmarks.push_back(file);
  }
  return kinds;
}

} // namespace

std::string paper_text(const Paper& paper, std::span<const ScoredFile> files) {
  const Kinds kinds = kinds_of(paper, files);
  const bool sliced = !kinds.whole.empty();
  TextTable reported{{{"reported by " + std::string(paper.name) + ", on " + std::string(paper.machine), false},
                      {"paper", true},
                      {"ours", true},
                      {"difference", true},
                      {"files", true},
                      {"its benchmarks", true}},
                     {}};
  if (sliced) reported.columns.push_back({"whole machine", true});
  for (const PaperTimeFigure& figure : figures) {
    if (figure.paper != paper.name) continue;
    const OurFigure ours = our_figure(figure, kinds.ours);
    reported.rows.push_back({std::string(figure.what), figure_text(figure.reported, figure.measure),
                             ours_text(ours, figure.measure), difference_text(figure, ours),
                             fmt::format("{}", ours.files),
                             ours_text(our_figure(figure, kinds.benchmarks), figure.measure)});
    if (sliced) reported.rows.back().push_back(ours_text(our_figure(figure, kinds.whole), figure.measure));
  }
  std::string text;
  if (sliced) text += "On slices on which grids are as dense as the benchmark's (size `paper`) on the whole machine:\n";
  text += table_by_file(paper, kinds.ours).text() + '\n';
  if (sliced) text += "On the whole machine:\n" + table_by_file(paper, kinds.whole).text() + '\n';
  return text + reported.text() +
         "Energy: from the least to the most of all sets. Clocks without the launches' constant cost.\n";
}

json paper_json(const Paper& paper, std::span<const ScoredFile> files) {
  const Kinds kinds = kinds_of(paper, files);
  const bool sliced = !kinds.whole.empty();
  json rows = json::array();
  for (const PaperTimeFigure& figure : figures) {
    if (figure.paper != paper.name) continue;
    const OurFigure ours = our_figure(figure, kinds.ours);
    json row = {
        {"figure", figure.what}, {"version", figure.version}, {"reported", figure.reported}, {"files", ours.files}};
    if (ours.files) {
      row["ours_least"] = ours.least;
      row["ours_most"] = ours.most;
    }
    if (const OurFigure one = our_figure(figure, kinds.benchmarks); one.files) {
      row["its_benchmarks_least"] = one.least;
      row["its_benchmarks_most"] = one.most;
    }
    if (const OurFigure one = our_figure(figure, kinds.whole); one.files) {
      row["whole_machine_least"] = one.least;
      row["whole_machine_most"] = one.most;
    }
    rows.push_back(std::move(row));
  }
  return {{"name", paper.name}, {"gpu", paper.machine}, {"sliced", sliced}, {"figures", std::move(rows)}};
}

} // namespace ptxrewrite::evaluate
