// Spilling: the kernels of PTX files that need more registers than a limit, and the cost until they fit. Each is
// brought below the limit, its allocation verified; then the text is printed, read again, allocated again within the
// limit, and that allocation verified, too. (ctest spill/* runs the results.)
//
//   spill_figures [--limit 32,16] [--rows] FILE.ptx ...      exit code 1 if a kernel does not fit or breaks a rule
#include "cli/options.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/registers/allocation.h"
#include "ir/ssa/ssa.h"
#include "transforms/manager/pipeline.h"
#include "transforms/registers/spill.h"

#include <cstdio>
#include <fstream>
#include <iterator>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using transforms::SpillStatistics;

struct Totals {
  unsigned kernels = 0, over = 0, wrong = 0;
  SpillStatistics statistics;
  void add(const SpillStatistics& one) {
    statistics.spilled += one.spilled;
    statistics.recomputed += one.recomputed;
    statistics.loads += one.loads;
    statistics.stores += one.stores;
    statistics.bytes += one.bytes;
  }
};

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

std::unique_ptr<Module> module_of(const std::string& path, const std::string& text) {
  Diagnostics diagnostics;
  std::unique_ptr<Module> module = grammar::read_module(SourceFile(path, text), diagnostics);
  return module && !module->targets.empty() ? std::move(module) : nullptr;
}

std::vector<Function*> kernels_of(Module& module) {
  std::vector<Function*> kernels;
  for (const std::unique_ptr<Function>& function : module.functions)
    if (function->is_entry && function->has_body) kernels.push_back(function.get());
  return kernels;
}

// Reports the error if the allocation is wrong.
bool fits(const Function& function, const Result<Allocation>& allocation, const AllocationOptions& options,
          const char* when) {
  const std::string name(function.module().text(function.name));
  if (!allocation) {
    std::printf("%s, %s: %s\n", name.c_str(), when, allocation.error().message.c_str());
    return false;
  }
  std::vector<std::string> errors = verify_allocation(function, *allocation, options);
  if (allocation->registers > options.register_limit) errors.push_back("more registers than the limit");
  for (const std::string& error : errors)
    std::printf("%s, %s: wrong: %s\n", name.c_str(), when, error.c_str());
  return errors.empty();
}

void measure_kernel(Function& function, const AllocationOptions& options, bool rows, Totals& totals) {
  ++totals.kernels;
  AllocationOptions unlimited = options;
  unlimited.register_limit = 255;
  unlimited.predicate_limit = 255;
  const Result<Allocation> before = allocate_registers(function, unlimited);
  if (!before || before->registers <= options.register_limit) return;
  ++totals.over;
  SpillStatistics one;
  const Result<Allocation> after = transforms::spill_to_limit(function, options, one);
  if (!fits(function, after, options, "spilled")) {
    ++totals.wrong;
    return;
  }
  totals.add(one);
  if (rows)
    std::printf("%-36.36s %5u %6u %6u %6u %6u %6u %6u\n", std::string(function.module().text(function.name)).c_str(),
                before->registers, after->registers, one.spilled, one.recomputed, one.loads, one.stores, one.bytes);
}

// As written by pass `spill`, and read again.
void measure_text(const std::string& path, const std::string& text, const AllocationOptions& options, Totals& totals) {
  std::unique_ptr<Module> module = module_of(path, text);
  Result<transforms::Pipeline> pipeline =
      transforms::parse_pipeline("spill(limit=" + std::to_string(options.register_limit) + ")");
  if (!module || !pipeline || !transforms::run_pipeline(*module, *pipeline, {.verify_each = true})) {
    std::printf("%s: the pass fails\n", path.c_str());
    ++totals.wrong;
    return;
  }
  std::unique_ptr<Module> again = module_of(path, print(*module));
  if (!again) {
    std::printf("%s: what the pass writes is not read\n", path.c_str());
    ++totals.wrong;
    return;
  }
  for (Function* function : kernels_of(*again))
    if (construct_ssa(*function).ok() &&
        !fits(*function, allocate_registers(*function, options), options, "read again"))
      ++totals.wrong;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  std::vector<uint32_t> limits{32, 16};
  bool rows = false;
  cli::Application app("what it takes to run in few registers");
  app.add_option("files", files, "PTX files").required().existing_files();
  app.add_option("--limit", limits, "registers of a thread: 32,16 if not given").delimiter(',');
  app.add_flag("--rows", rows, "print every kernel that needs more");
  if (std::optional<int> code = app.parse(argc, argv)) return *code;
  unsigned wrong = 0;
  for (uint32_t limit : limits) {
    if (rows) std::puts("kernel                               before  after  slots  again  loads stores  bytes");
    Totals totals;
    for (const std::string& path : files) {
      const std::string text = read(path);
      std::unique_ptr<Module> module = module_of(path, text);
      if (!module) continue;
      AllocationOptions options;
      options.compute_capability = compute_capability_of(module->text(module->targets[0]));
      options.register_limit = limit;
      for (Function* function : kernels_of(*module))
        if (construct_ssa(*function).ok()) measure_kernel(*function, options, rows, totals);
      measure_text(path, text, options, totals);
    }
    const SpillStatistics& sum = totals.statistics;
    std::printf("%u registers: %u of %u kernels need more, %u are wrong or do not fit; %u values in %u bytes of local "
                "memory, %u loads, %u stores; %u values computed again\n",
                limit, totals.over, totals.kernels, totals.wrong, sum.spilled, sum.bytes, sum.loads, sum.stores,
                sum.recomputed);
    wrong += totals.wrong;
  }
  return wrong > 0 ? 1 : 0;
}
