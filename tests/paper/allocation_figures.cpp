// Register allocation over PTX files: every kernel's registers, verified, beside those of ptxas.
//
//   allocation_figures [--architecture sm_80] [--limit N] [--rows] FILE.ptx ...
//   allocation_figures --check [--limit N] FILE.ptx ...          no ptxas; exit code 1 if an allocation is wrong
//
// Columns: registers and predicates used, maximum live at one point, remaining moves and vector temporaries, ptxas's
// registers, their ratio; the estimate without ptxas (ir/machine/registers/registers.h), and its ratio.
#include "cli/options.h"
#include "grammar/reader.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/registers/allocation.h"
#include "ir/machine/registers/registers.h"
#include "ir/ssa/ssa.h"

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
  std::string architecture;
  uint32_t limit = 255;
  bool rows = false, check = false;
};

struct Row {
  std::string kernel;
  Allocation allocation;
  uint32_t ptxas = 0;
  uint32_t estimate = 0;
  double ratio() const { return static_cast<double>(ours()) / ptxas; }
  double estimate_ratio() const { return static_cast<double>(estimate) / ptxas; }
  // ptxas reserves a register for the stack pointer in every kernel.
  uint32_t ours() const { return allocation.registers + 1; }
};

struct Totals {
  std::vector<Row> rows;
  unsigned wrong = 0, many_predicates = 0, unplaced = 0, unread = 0;
};

void measure_function(Function& function, uint32_t capability, const Options& options, const FiguresByFunction& figures,
                      Totals& totals) {
  std::string name(function.module().text(function.name));
  if (!construct_ssa(function).ok()) {
    ++totals.unread;
    return;
  }
  AllocationOptions wanted{capability, register_limit_of(function, options.limit), 64, false};
  ControlFlow flow(function);
  MachineValues values(function, flow, capability);
  Allocation allocation = colour_registers(function, values, wanted);
  if (!allocation.unplaced.empty()) {
    ++totals.unplaced;
    std::printf("%s: %zu values have no register\n", name.c_str(), allocation.unplaced.size());
    return;
  }
  std::vector<std::string> errors = verify_allocation(function, allocation, wanted);
  for (const std::string& error : errors)
    std::printf("%s: wrong: %s\n", name.c_str(), error.c_str());
  totals.wrong += errors.empty() ? 0 : 1;
  constexpr uint32_t machine_predicates = 7;
  totals.many_predicates += allocation.predicates > machine_predicates ? 1 : 0;
  auto found = figures.find(name);
  totals.rows.push_back({name, std::move(allocation), found == figures.end() ? 0 : found->second.registers,
                         register_need(function, capability).registers});
}

void measure_file(const std::string& path, const Options& options, Totals& totals) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Diagnostics diagnostics;
  std::unique_ptr<Module> module = grammar::read_module(SourceFile(path, text), diagnostics);
  if (!module || module->targets.empty()) {
    ++totals.unread;
    return;
  }
  std::string architecture =
      options.architecture.empty() ? std::string(module->text(module->targets[0])) : options.architecture;
  FiguresByFunction figures;
  if (!options.check) {
    Result<FiguresByFunction> real = machine_figures(text, architecture);
    if (!real) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), real.error().message.c_str());
      ++totals.unread;
      return;
    }
    figures = *real;
  }
  for (const std::unique_ptr<Function>& function : module->functions)
    if (function->is_entry && function->has_body)
      measure_function(*function, compute_capability_of(architecture), options, figures, totals);
}

void print_row(const Row& row) {
  const Allocation& a = row.allocation;
  size_t edges = static_cast<size_t>(
      std::count_if(a.moves.begin(), a.moves.end(), [](const RegisterMove& move) { return bool(move.edge); }));
  std::printf("%-44.44s %4u %4u %5u %4u %5zu %5zu %5zu %5u %6.2f %5u %6.2f\n", row.kernel.c_str(), a.registers,
              a.live_registers, a.predicates, a.live_predicates, edges, a.moves.size() - edges, a.temporaries.size(),
              row.ptxas, row.ptxas ? row.ratio() : 0.0, row.estimate, row.ptxas ? row.estimate_ratio() : 0.0);
}

// ptxas uses more registers for overlapping loads as long as an SM stays full; where it cannot, it must save.
void print_large(const Totals& totals) {
  constexpr uint32_t free_registers = 40;
  double sum = 0;
  unsigned count = 0;
  for (const Row& row : totals.rows)
    if (row.ptxas > free_registers) {
      sum += row.ratio();
      ++count;
    }
  if (count > 0)
    std::printf("of those with more than %u by ptxas: %u kernels, mean %.3f\n", free_registers, count, sum / count);
}

void print_mean(const char* what, const Totals& totals, double (Row::*of)() const) {
  double sum = 0, logarithms = 0, distance = 0;
  for (const Row& row : totals.rows) {
    const double ratio = (row.*of)();
    sum += ratio;
    logarithms += std::log(ratio);
    distance += std::abs(ratio - 1);
  }
  const double count = static_cast<double>(totals.rows.size());
  std::printf("%s / ptxas: mean %.3f, geometric mean %.3f, mean distance %.1f %%\n", what, sum / count,
              std::exp(logarithms / count), 100 * distance / count);
}

void print(Totals& totals, const Options& options) {
  const char* head =
      "kernel                                       regs live preds live edges moves temps ptxas  ratio  est.  ratio";
  if (options.rows) {
    std::puts(head);
    for (const Row& row : totals.rows)
      print_row(row);
  }
  std::erase_if(totals.rows, [](const Row& row) { return row.ptxas == 0; });
  std::printf("%zu kernels beside ptxas, %u wrong, %u with values without register, %u with more predicates than a "
              "machine has, %u not read\n",
              totals.rows.size(), totals.wrong, totals.unplaced, totals.many_predicates, totals.unread);
  if (totals.rows.empty()) return;
  print_mean("registers", totals, &Row::ratio);
  print_mean("estimate", totals, &Row::estimate_ratio);
  print_large(totals);
  auto distance = [](const Row& row) { return std::abs(std::log(row.ratio())); };
  std::sort(totals.rows.begin(), totals.rows.end(),
            [&](const Row& a, const Row& b) { return distance(a) > distance(b); });
  std::printf("worst:\n%s\n", head);
  for (size_t i = 0; i < std::min<size_t>(10, totals.rows.size()); ++i)
    print_row(totals.rows[i]);
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  cli::Application app("registers of our allocation beside those of ptxas");
  app.add_option("files", options.files, "PTX files").required().existing_files();
  app.add_option("--architecture", options.architecture, "sm_80 ...; the file's own target if not given");
  app.add_option("--limit", options.limit, "registers that a thread may have");
  app.add_flag("--rows", options.rows, "print every kernel");
  app.add_flag("--check", options.check, "verify only, without ptxas");
  if (std::optional<int> code = app.parse(argc, argv)) return *code;
  Totals totals;
  for (const std::string& file : options.files)
    measure_file(file, options, totals);
  print(totals, options);
  return totals.wrong > 0 ? 1 : 0;
}
