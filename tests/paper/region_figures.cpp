// RegLess regions of PTX files, verified: sizes, inputs and live registers per region (RegLess Table 2, Fig. 19), and
// the differences between the paper's Algorithm 2 for soft definitions and ours.
//
//   region_figures [--live 32] [--schedule] [--machine-blocks] [--machine 52] [--kernels] FILE.ptx ...
//   region_figures --paper FILE.ptx ...      beside the paper's Table 2, on its machine, by our additions to the paper
//
// Exit code 1 if regions break a rule.
#include "cli/options.h"
#include "grammar/reader.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/registers/machine_blocks.h"
#include "ir/machine/registers/regions.h"
#include "ir/machine/registers/schedule.h"
#include "ir/ssa/ssa.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

struct Options {
  std::vector<std::string> files;
  RegionLimits limits;
  bool kernels = false, paper = false, schedule = false;
  bool machine_blocks = false;   // instead of those of the text
  bool through_barriers = false; // they do not end regions, as in the paper
  uint32_t machine = 0;
};

// Static instructions per region (Table 2), by our samples' names.
const std::map<std::string, double> table_2 = {{"bplus_tree", 3.7}, {"backprop", 6.7},   {"bfs", 3.3},
                                               {"dwt2d", 9.5},      {"gaussian", 8.1},   {"heartwall", 4.6},
                                               {"hotspot", 6.4},    {"hybridsort", 6.5}, {"kmeans", 3.9},
                                               {"lavamd", 7.5},     {"leukocyte", 7.7},  {"lud", 16.0},
                                               {"mummergpu", 6.4},  {"myocyte", 9.3},    {"nn", 6.3},
                                               {"nw", 10.8},        {"pathfinder", 4.9}, {"particlefilter", 10.0},
                                               {"srad_v1", 9.1},    {"srad_v2", 6.9},    {"streamcluster", 4.3}};

struct Distribution {
  double sum = 0, squares = 0, count = 0, most = 0;
  void add(double value) {
    sum += value;
    squares += value * value;
    count += 1;
    most = std::max(most, value);
  }
  void add(const Distribution& other) {
    sum += other.sum;
    squares += other.squares;
    count += other.count;
    most = std::max(most, other.most);
  }
  double mean() const { return count > 0 ? sum / count : 0; }
  double deviation() const { return count > 0 ? std::sqrt(std::max(0.0, squares / count - mean() * mean())) : 0; }
};

struct Figures {
  Distribution instructions, inputs, live, metadata;
  unsigned definitions = 0, soft = 0, only_ours = 0, only_paper = 0;
  void add(const Figures& other) {
    instructions.add(other.instructions);
    inputs.add(other.inputs);
    live.add(other.live);
    metadata.add(other.metadata);
    definitions += other.definitions;
    soft += other.soft;
    only_ours += other.only_ours;
    only_paper += other.only_paper;
  }
  void print(const std::string& name) const {
    std::printf("%-36.36s %7.0f %6.1f %5.1f %6.1f %5.1f %6.1f %5.1f %4.0f %5.0f %6u %6u %6u %6u\n", name.c_str(),
                instructions.count, instructions.mean(), instructions.deviation(), inputs.mean(), inputs.deviation(),
                live.mean(), live.deviation(), live.most,
                instructions.sum > 0 ? 100 * metadata.sum / instructions.sum : 0, definitions, soft, only_ours,
                only_paper);
  }
};

void count_soft(const RegisterProgram& program, const WarpLiveness& liveness, Figures& figures) {
  for (uint32_t b = 0; b < program.blocks.size(); ++b)
    for (uint32_t i = 0; i < program.blocks[b].instructions.size(); ++i)
      for (unsigned r = 0; r < program.registers; ++r) {
        if (!program.blocks[b].instructions[i].writes.test(r)) continue;
        bool ours = liveness.soft(b, i).test(r), paper = is_soft_by_algorithm_2(program, liveness, b, r);
        ++figures.definitions;
        figures.soft += ours;
        figures.only_ours += ours && !paper;
        figures.only_paper += paper && !ours;
      }
}

// Returns false if a rule is broken or the function has no allocation.
bool measure(Function& function, uint32_t capability, const Options& options, Figures& figures) {
  std::string name(function.module().text(function.name));
  AllocationOptions wanted{.compute_capability = capability, .predicate_limit = 64, .keep_names = true};
  Status status = construct_ssa(function);
  if (!status.ok()) return true;
  if (options.schedule) {
    schedule(function, capability, {.goal = ScheduleGoal::early_loads, .live_limit = options.limits.live});
    // Values of one name that overlap in the new order get names of their own, as in a scheduled text.
    destruct_ssa(function);
    status = construct_ssa(function);
    if (!status.ok()) return true;
  }
  Result<Allocation> allocation = allocate_registers(function, wanted);
  if (!allocation) {
    std::printf("%s: %s\n", name.c_str(), allocation.error().message.c_str());
    return false;
  }
  std::vector<std::string> errors = verify_allocation(function, *allocation, wanted);
  ControlFlow flow(function);
  MachineValues values(function, flow, capability, allocation->apart);
  RegisterProgram program = register_program(function, values, *allocation);
  if (options.machine_blocks) program = machine_blocks(function, program, capability);
  if (options.through_barriers)
    for (RegisterBlock& block : program.blocks)
      for (RegisterInstruction& instruction : block.instructions)
        instruction.waits = false;
  WarpLiveness liveness(program);
  std::vector<Region> regions = create_regions(program, liveness, options.limits);
  for (const std::string& error : verify_regions(program, liveness, regions, options.limits))
    errors.push_back(error);
  for (const std::string& error : errors)
    std::printf("%s: wrong: %s\n", name.c_str(), error.c_str());
  for (const Region& region : regions) {
    if (region.weight == 0) continue; // the machine has no instruction there
    figures.instructions.add(region.weight);
    figures.inputs.add(static_cast<double>(region.inputs.count()));
    figures.live.add(region.live);
    figures.metadata.add(metadata_instructions(region));
  }
  count_soft(program, liveness, figures);
  return errors.empty();
}

std::string sample_of(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

// The kernels of a file, together. Returns false if regions break a rule.
bool measure_file(const std::string& path, const Options& options, Figures& figures) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Diagnostics diagnostics;
  std::unique_ptr<Module> module = grammar::read_module(SourceFile(path, std::move(text)), diagnostics);
  if (!module || module->targets.empty()) return true;
  const uint32_t own = compute_capability_of(module->text(module->targets[0]));
  bool right = true;
  for (const auto& function : module->functions) {
    if (!function->is_entry || !function->has_body) continue;
    Figures kernel;
    right &= measure(*function, options.machine ? options.machine : own, options, kernel);
    if (options.kernels) kernel.print(std::string(module->text(function->name)));
    figures.add(kernel);
  }
  return right;
}

// Instructions per region in the order of the text, in the scheduled order, and in this one if barriers end no region.
bool compare_with_paper(Options options) {
  struct Column {
    const char* name;
    bool schedule, machine_blocks, through_barriers;
    double logarithms = 0;
    std::string outside;
  };
  std::vector<Column> columns{{"as read", false, false, false},
                              {"scheduled", true, false, false},
                              {"scheduled, in the machine's blocks", true, true, false},
                              {"the same, through barriers", true, true, true}};
  options.machine = 52;
  bool right = true;
  unsigned rows = 0;
  std::puts("machine instructions of a GTX 980 per region    paper  as read        scheduled      machine blocks and "
            "barriers inside");
  for (const std::string& path : options.files) {
    auto paper = table_2.find(sample_of(path));
    if (paper == table_2.end()) continue;
    ++rows;
    std::printf("%-46s %6.1f", paper->first.c_str(), paper->second);
    for (Column& column : columns) {
      options.schedule = column.schedule;
      options.machine_blocks = column.machine_blocks;
      options.through_barriers = column.through_barriers;
      Figures figures;
      right &= measure_file(path, options, figures);
      const double ratio = figures.instructions.mean() / paper->second;
      column.logarithms += std::log(ratio);
      if (ratio > 1.5 || ratio < 1 / 1.5) column.outside += " " + paper->first;
      std::printf("  %5.1f (%4.2f)", figures.instructions.mean(), ratio);
    }
    std::puts("");
  }
  for (const Column& column : columns)
    std::printf("%s: geometric mean %.2f of the paper's; outside of a factor of 1.5:%s\n", column.name,
                rows ? std::exp(column.logarithms / rows) : 1, column.outside.c_str());
  return right;
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  cli::Application app("RegLess regions");
  app.add_option("files", options.files, "PTX files").required().existing_files();
  app.add_option("--live", options.limits.live, "registers that a region may hold at one time");
  app.add_flag("--schedule", options.schedule, "loads first, as far as registers allow, before regions are formed");
  app.add_flag("--machine-blocks", options.machine_blocks, "blocks of the machine code, not of the text");
  app.add_flag("--through-barriers", options.through_barriers, "barriers do not end regions");
  app.add_option("--machine", options.machine, "compute capability; the file's own if not given");
  app.add_flag("--kernels", options.kernels, "print every kernel, not every file");
  app.add_flag("--paper", options.paper, "beside Table 2 of the paper");
  if (std::optional<int> code = app.parse(argc, argv)) return *code;
  if (options.paper) return compare_with_paper(options) ? 0 : 1;
  std::puts(
      "                                             instructions    inputs       live       most  meta   defs   soft  "
      " ours  paper\n                                     regions   mean   dev   mean   dev   mean   dev         %  "
      "               only   only");
  Figures all;
  bool right = true;
  for (const std::string& path : options.files) {
    Figures file;
    right &= measure_file(path, options, file);
    if (!options.kernels) file.print(sample_of(path));
    all.add(file);
  }
  all.print("all");
  return right ? 0 : 1;
}
