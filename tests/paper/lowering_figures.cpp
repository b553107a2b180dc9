// The accuracy of ir/machine's estimate of the code size against ptxas, over PTX files, for several architectures; and
// of its order of two versions of a kernel.
//
//   lowering_figures --listing KERNEL [--architectures sm_80] FILE.ptx       the estimated cost of each instruction
//   lowering_figures [--architectures sm_75,sm_80,sm_90] [--versions] [--worst 10] FILE.ptx ...
//   lowering_figures --half held-out ...                                      the kernels that no rule is based on
//   lowering_figures --pairs [--wrong] ORIGINAL.ptx FOLDER/VERSION.ptx ...    other versions, named by FOLDER
//
// A text for a newer target than an architecture is read as one for the architecture; if ptxas refuses that, the file
// is skipped there.
#include "cli/options.h"
#include "grammar/reader.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/lowering/halves.h"
#include "tests/paper/signs.h"
#include "tests/paper/versions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <regex>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> architectures{"sm_75", "sm_80", "sm_90"};
  bool versions = false;
  bool pairs = false; // files are in pairs
  bool wrong = false;
  bool rows = false;
  std::string listing; // a kernel
  std::string half = "all";
  size_t worst = 10;
};

struct Row {
  std::string kernel;
  uint32_t real = 0, estimated = 0;
  double error() const { return static_cast<double>(estimated) / real - 1; }
};

// The last assemblers that support machines before 7.5 read PTX 7.8 (CUDA 11.8).
std::string for_old_assembler(const std::string& text) {
  static const std::regex version(R"(\.version\s+\d+\.\d+)");
  return std::regex_replace(text, version, ".version 7.8", std::regex_constants::format_first_only);
}

std::string for_target(const std::string& source, const std::string& architecture) {
  static const std::regex target(R"(\.target\s+sm_(\d+)\w*)");
  const std::string text = compute_capability_of(architecture) < 75 ? for_old_assembler(source) : source;
  std::smatch found;
  if (!std::regex_search(text, found, target) || std::stoul(found[1]) <= compute_capability_of(architecture))
    return text;
  return std::string(found.prefix()) + ".target " + architecture + std::string(found.suffix());
}

// Empty if the text cannot be read.
std::map<std::string, uint32_t> estimate(const std::string& text, uint32_t capability) {
  Diagnostics diagnostics;
  std::unique_ptr<Module> module = grammar::read_module(SourceFile("text.ptx", text), diagnostics);
  std::map<std::string, uint32_t> estimates;
  if (!module) return estimates;
  std::vector<Function*> kernels;
  for (const std::unique_ptr<Function>& function : module->functions)
    if (function->has_body && construct_ssa(*function).ok() && function->is_entry) kernels.push_back(function.get());
  for (const Function* function : kernels)
    estimates[std::string(module->text(function->name))] = lower(*function, capability).static_instructions();
  return estimates;
}

void list_costs(const std::string& text, const std::string& kernel, uint32_t capability) {
  Diagnostics diagnostics;
  std::unique_ptr<Module> module = grammar::read_module(SourceFile("text.ptx", text), diagnostics);
  if (!module) return;
  for (const std::unique_ptr<Function>& function : module->functions) {
    if (module->text(function->name) != kernel || !construct_ssa(*function).ok()) continue;
    const Lowering lowering = lower(*function, capability);
    for (BlockId block : function->layout) {
      std::printf("block %u, %u copies\n", block.index(), lowering.copies_of(block));
      for (InstructionId id : function->instructions_in(block)) {
        const Instruction& instruction = function->instructions[id];
        if (instruction.kind != InstructionKind::real) continue;
        const std::string line(text, instruction.range.begin, instruction.range.end - instruction.range.begin);
        const InstructionCost& cost = lowering.cost(id);
        std::printf("  %2u + %u uniform%s  %s\n", cost.weight, cost.uniform,
                    !lowering.needed(id)    ? " dead    "
                    : lowering.absorbed(id) ? " absorbed"
                                            : "         ",
                    line.c_str());
      }
    }
    std::printf("prologue %u + %u, subroutines %u, copies of loops %u; %u in all\n", lowering.prologue(),
                lowering.prologue_uniform(), lowering.subroutine_instructions(), lowering.unrolled_instructions(),
                lowering.static_instructions());
  }
}

class Measurement {
public:
  Measurement(std::string architecture, const Options& options)
      : architecture_(std::move(architecture)), capability_(compute_capability_of(architecture_)), options_(options) {}

  void add(const std::string& path, const std::string& source) {
    const std::string text = for_target(source, architecture_);
    Result<FiguresByFunction> real = machine_figures(text, architecture_);
    const std::map<std::string, uint32_t> estimates = real ? estimate(text, capability_) : decltype(estimates){};
    if (estimates.empty()) {
      ++left_out_;
      return;
    }
    for (const auto& [kernel, estimated] : estimates)
      if (auto found = real->find(kernel); found != real->end())
        rows_.push_back({path.substr(path.rfind('/') + 1) + ":" + kernel, found->second.instructions, estimated});
    if (!options_.versions) return;
    for (const auto& [name, changed] : tests::versions_of(text))
      compare(path.substr(path.rfind('/') + 1), name, *real, estimates, changed);
  }

  void print() {
    if (options_.half == "looked-at")
      std::erase_if(rows_, [](const Row& row) { return tests::is_held_out(row.kernel); });
    if (options_.half == "held-out")
      std::erase_if(rows_, [](const Row& row) { return !tests::is_held_out(row.kernel); });
    double sum = 0, absolute = 0;
    std::vector<double> errors;
    for (const Row& row : rows_) {
      sum += row.error();
      absolute += std::fabs(row.error());
      errors.push_back(std::fabs(row.error()));
    }
    if (rows_.empty()) return;
    if (options_.rows)
      for (const Row& row : rows_)
        std::printf("row\t%s\t%s\t%u\t%u\n", architecture_.c_str(), row.kernel.c_str(), row.real, row.estimated);
    std::ranges::sort(errors);
    const auto count = static_cast<double>(rows_.size());
    std::printf("%s: %zu kernels (%u files left out), mean absolute error %.1f %%, mean error %+.1f %%, half below "
                "%.1f %%, nine in ten below %.1f %%\n",
                architecture_.c_str(), rows_.size(), left_out_, 100 * absolute / count, 100 * sum / count,
                100 * errors[errors.size() / 2], 100 * errors[errors.size() * 9 / 10]);
    std::ranges::sort(rows_, std::greater{}, [](const Row& row) { return std::fabs(row.error()); });
    for (size_t i = 0; i < std::min(options_.worst, rows_.size()); ++i)
      std::printf("  %-70.70s %6u by ptxas, %6u estimated (%+.0f %%)\n", rows_[i].kernel.c_str(), rows_[i].real,
                  rows_[i].estimated, 100 * rows_[i].error());
    if (options_.versions) tests::print_signs(pairs_, options_.wrong);
  }

  // Kernels that both texts have.
  void add_pair(const std::string& path, const std::string& source, const std::string& version_path,
                const std::string& version) {
    const std::string text = for_target(source, architecture_);
    Result<FiguresByFunction> real = machine_figures(text, architecture_);
    if (!real) {
      ++left_out_;
      return;
    }
    std::string folder = version_path.substr(0, version_path.rfind('/'));
    compare(path.substr(path.rfind('/') + 1), folder.substr(folder.rfind('/') + 1), *real, estimate(text, capability_),
            for_target(version, architecture_));
  }

  void print_pairs() const {
    std::printf("%s: %zu pairs of kernels (%u of texts left out)\n", architecture_.c_str(), pairs_.size(), left_out_);
    tests::print_signs(pairs_, options_.wrong);
  }

private:
  void compare(const std::string& file, const std::string& version, const FiguresByFunction& real,
               const std::map<std::string, uint32_t>& estimates, const std::string& changed) {
    Result<FiguresByFunction> real_after = machine_figures(changed, architecture_);
    if (!real_after) return;
    for (const auto& [kernel, after] : estimate(changed, capability_)) {
      const std::string original =
          tests::original_of(kernel, [&](const std::string& name) { return estimates.contains(name); });
      if (real.contains(original) && estimates.contains(original) && real_after->contains(kernel))
        pairs_.push_back({version, file + ":" + kernel, real.find(original)->second.instructions,
                          real_after->find(kernel)->second.instructions, estimates.at(original), after});
    }
  }

  std::string architecture_;
  uint32_t capability_;
  const Options& options_;
  std::vector<Row> rows_;
  std::vector<tests::VersionPair> pairs_;
  unsigned left_out_ = 0;
};

void measure_pairs(Measurement& measurement, const std::vector<std::string>& files) {
  for (size_t i = 0; i + 1 < files.size(); i += 2) {
    Result<std::string> original = read_file(files[i]), version = read_file(files[i + 1]);
    if (original && version) measurement.add_pair(files[i], *original, files[i + 1], *version);
  }
  measurement.print_pairs();
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  cli::Application app("estimated sizes of code beside ptxas");
  app.add_option("files", options.files, "PTX files").required();
  app.add_option("--architectures", options.architectures, "sm_80,sm_90 ...").delimiter(',');
  app.add_flag("--versions", options.versions, "compare versions of each text as well");
  app.add_flag("--pairs", options.pairs, "the files are originals and versions by turns");
  app.add_flag("--wrong", options.wrong, "print the pairs whose sign is wrong");
  app.add_option("--worst", options.worst, "rows to print for each architecture");
  app.add_option("--half", options.half, "of the kernels: looked-at, held-out or all")
      .one_of({"looked-at", "held-out", "all"});
  app.add_flag("--rows", options.rows, "every kernel in a line of its own, for scripts");
  app.add_option("--listing", options.listing, "what each instruction of this kernel is thought to cost");
  if (std::optional<int> code = app.parse(argc, argv)) return *code;
  if (!options.listing.empty()) {
    const std::string& architecture = options.architectures.front();
    for (const std::string& path : options.files)
      if (Result<std::string> text = read_file(path))
        list_costs(for_target(*text, architecture), options.listing, compute_capability_of(architecture));
    return 0;
  }
  for (const std::string& architecture : options.architectures) {
    Measurement measurement(architecture, options);
    if (options.pairs) {
      measure_pairs(measurement, options.files);
      continue;
    }
    for (const std::string& path : options.files)
      if (Result<std::string> text = read_file(path)) measurement.add(path, *text);
    measurement.print();
    std::fflush(stdout);
  }
  return 0;
}
