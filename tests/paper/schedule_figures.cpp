// Region scheduling: registers and occupancy by ptxas before and after, per kernel of PTX files and architecture.
//
//   schedule_figures [--passes schedule] [--architectures sm_80,sm_90] [--rows] FILE.ptx ...
#include "cli/options.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/figures/occupancy.h"
#include "transforms/manager/pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> architectures{"sm_80", "sm_90"};
  std::string passes = "schedule";
  bool rows = false;
};

struct Row {
  std::string kernel;
  MachineFigures before, after;
  uint32_t warps_before = 0, warps_after = 0; // warps that fit by registers, in blocks of 256 threads
  double ratio() const { return static_cast<double>(after.registers) / before.registers; }
  double warp_ratio() const { return static_cast<double>(warps_after) / warps_before; }
  bool changed() const { return before != after; }
  bool worse() const { return is_worse(after, before) || warps_after < warps_before; }
};

uint32_t warps_of(const MachineFigures& figures, const std::string& architecture) {
  KernelResources kernel;
  kernel.threads_per_block = 256;
  kernel.registers = figures.registers;
  return occupancy(machine_for(compute_capability_of(architecture)), kernel).warps;
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

// Empty if the text cannot be read or a pass breaks it.
std::string rewritten(const std::string& path, const std::string& text, const transforms::Pipeline& pipeline) {
  Diagnostics diagnostics;
  std::unique_ptr<Module> module = grammar::read_module(SourceFile(path, text), diagnostics);
  if (!module) return {};
  transforms::RunOptions options;
  options.run_ptxas = true;
  if (!transforms::run_pipeline(*module, pipeline, options)) return {};
  return print(*module);
}

void measure(const std::string& path, const transforms::Pipeline& pipeline, const Options& options,
             std::vector<std::vector<Row>>& rows) {
  const std::string before = read(path), after = rewritten(path, before, pipeline);
  for (size_t i = 0; i < options.architectures.size(); ++i) {
    const std::string& architecture = options.architectures[i];
    Result<FiguresByFunction> old = machine_figures(before, architecture), now = machine_figures(after, architecture);
    if (!old || !now) {
      std::fprintf(stderr, "%s, %s: %s\n", path.c_str(), architecture.c_str(),
                   (!old ? old : now).error().message.c_str());
      continue;
    }
    for (const auto& [kernel, figures] : *now) {
      auto same = old->find(kernel);
      if (same == old->end() || same->second.registers == 0) continue;
      rows[i].push_back(
          {kernel, same->second, figures, warps_of(same->second, architecture), warps_of(figures, architecture)});
    }
  }
}

void print_row(const Row& row) {
  std::printf("%-44.44s %5u %5u %5.2f %6u %5u %6u %5u %6u %5u\n", row.kernel.c_str(), row.before.registers,
              row.after.registers, row.ratio(), row.warps_before, row.warps_after, row.before.instructions,
              row.after.instructions, row.before.spilled_bytes, row.after.spilled_bytes);
}

double geometric_mean(const std::vector<Row>& rows, double (Row::*of)() const) {
  double sum = 0;
  for (const Row& row : rows)
    sum += std::log((row.*of)());
  return rows.empty() ? 1 : std::exp(sum / static_cast<double>(rows.size()));
}

void print_table(const std::string& architecture, std::vector<Row> rows, bool all_rows) {
  std::printf("region scheduling: registers and occupancy by ptxas before/after, %s\n", architecture.c_str());
  std::puts(
      "kernel                                          registers ratio  warps of an SM instructions spilled bytes");
  for (const Row& row : rows)
    if (all_rows || row.changed()) print_row(row);
  const auto changed = std::ranges::count_if(rows, &Row::changed), worse = std::ranges::count_if(rows, &Row::worse);
  const auto fewer = std::ranges::count_if(rows, [](const Row& row) { return row.ratio() < 1; });
  const auto more_warps =
      std::ranges::count_if(rows, [](const Row& row) { return row.warps_after > row.warps_before; });
  std::printf("%zu kernels, %td changed, %td with fewer registers, %td with more warps, %td worse\n", rows.size(),
              changed, fewer, more_warps, worse);
  std::printf("geometric mean: registers %.4f, warps %.4f\n", geometric_mean(rows, &Row::ratio),
              geometric_mean(rows, &Row::warp_ratio));
  if (rows.empty()) return;
  const auto [best, worst] = std::ranges::minmax_element(rows, {}, &Row::ratio);
  std::printf("best: %s %.2f; worst: %s %.2f\n\n", best->kernel.c_str(), best->ratio(),
              worst->ratio() > 1 ? worst->kernel.c_str() : "none has more,", worst->ratio());
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  cli::Application app("registers and occupancy before and after scheduling, by ptxas");
  app.add_option("files", options.files, "PTX files").required().existing_files();
  app.add_option("--passes", options.passes, "another pipeline");
  app.add_option("--architectures", options.architectures, "sm_80,sm_90 if not given").delimiter(',');
  app.add_flag("--rows", options.rows, "print every kernel, changed or not");
  if (std::optional<int> code = app.parse(argc, argv)) return *code;
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(options.passes);
  if (!pipeline) {
    std::fprintf(stderr, "%s\n", pipeline.error().message.c_str());
    return 2;
  }
  std::vector<std::vector<Row>> rows(options.architectures.size());
  for (const std::string& file : options.files)
    measure(file, *pipeline, options, rows);
  for (size_t i = 0; i < rows.size(); ++i)
    print_table(options.architectures[i], rows[i], options.rows);
  return 0;
}
