// The lowering against ptxas over public kernels and samples: instructions, registers, and which of two versions is
// longer; by target and group, and the half of the kernels apart that no rule was made by.
//
//   lowering_public [--corpus FOLDER] [--groups a,b] [--most 150] [--versions 2] [--passes P]... [--results FILE]
//   [FILE.ptx ...]
//
// FOLDER ($PTXREWRITE_PTX_CORPUS) has one folder of PTX files a group. From each group at most --most kernels are taken
// for a target, at most --most-of-file of one file, in the order of a hash of the files' names: those of --least
// machine instructions and more, one of each name. FILEs are the group `samples`, all of whose kernels are taken.
#include "cli/options.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/lowering/assembled.h"
#include "tests/lowering/corpus.h"
#include "tests/lowering/halves.h"
#include "tests/lowering/table.h"
#include "tests/paper/versions.h"
#include "transforms/manager/pipeline.h"
#include "transforms/registers/machine_spill.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

namespace {

using namespace ptxrewrite;

struct Options {
  std::vector<std::string> files, groups, passes;
  std::vector<std::string> architectures{"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
  std::string corpus, results;
  uint32_t most = 150, most_of_file = 8, least = 20, versions = 0, worst = 20;
  uint64_t most_bytes = 400'000;
  bool rows = false;
};

struct Estimate {
  uint32_t instructions = 0, registers = 0;
  uint32_t copies = 0; // instructions of further copies of loops
};

constexpr const char* samples_group = "samples";

// By name of the kernel; empty if the text cannot be read.
std::map<std::string, Estimate> estimates_of(const std::string& text, uint32_t capability) {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("text.ptx", text), diagnostics);
  std::map<std::string, Estimate> estimates;
  if (!module) return estimates;
  std::vector<ir::Function*> kernels;
  for (const std::unique_ptr<ir::Function>& function : module->functions)
    if (function->has_body && ir::construct_ssa(*function).ok() && function->is_entry)
      kernels.push_back(function.get());
  for (const ir::Function* kernel : kernels) {
    ir::Lowering lowering = ir::lower(*kernel, capability);
    const transforms::MachineSpill spill = transforms::machine_spill(*kernel, capability);
    transforms::add_spill(lowering, spill);
    estimates[std::string(module->text(kernel->name))] = {lowering.static_instructions(), spill.registers,
                                                          lowering.unrolled_instructions()};
  }
  return estimates;
}

// Empty if the text cannot be read or the passes leave it as it is.
std::string rewritten(const std::string& text, const std::string& passes) {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("text.ptx", text), diagnostics);
  const Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes);
  if (!module || !pipeline || !transforms::run_pipeline(*module, *pipeline)) return {};
  return ir::print(*module);
}

class Measurement {
public:
  Measurement(const std::string& architecture, const Options& options, tests::AssembledTexts& assembled)
      : options_(options), assembled_(assembled), capability_(ir::compute_capability_of(architecture)) {
    table_.architecture = architecture;
  }

  void add(const tests::CorpusFile& file) {
    const bool is_sample = file.group == samples_group;
    if (!is_sample && taken_[file.group] >= options_.most) return;
    Result<std::string> source = read_file(file.path);
    if (!source) return;
    const std::string text = tests::text_for_target(*source, table_.architecture);
    const std::optional<ir::FiguresByFunction> real = assembled_.figures(text, table_.architecture);
    if (!real) {
      ++table_.refused;
      return;
    }
    const std::map<std::string, Estimate> estimates = estimates_of(text, capability_);
    if (estimates.empty()) ++table_.unread;
    const std::set<std::string> kernels = take_kernels(file, *real, estimates);
    if (!kernels.empty()) compare_versions(file, text, kernels, *real, estimates);
  }

  const tests::TargetTable& table() const { return table_; }

private:
  using Estimates = std::map<std::string, Estimate>;

  static std::string title(const tests::CorpusFile& file, const std::string& kernel) {
    return file.path.substr(file.path.rfind('/') + 1) + ':' + kernel;
  }
  // The samples' halves are those of lowering_figures.
  static bool is_held_out(const tests::CorpusFile& file, const std::string& kernel) {
    return tests::is_held_out(file.group == samples_group ? title(file, kernel) : kernel);
  }

  // Names of the file's kernels that count.
  std::set<std::string> take_kernels(const tests::CorpusFile& file, const ir::FiguresByFunction& real,
                                     const Estimates& estimates) {
    const bool is_sample = file.group == samples_group;
    std::set<std::string> kernels;
    for (const auto& [kernel, estimate] : estimates) {
      const auto found = real.find(kernel);
      if (found == real.end() || found->second.registers == 0) continue;
      if (!is_sample) {
        if (found->second.instructions < options_.least) {
          ++table_.short_kernels;
          continue;
        }
        if (kernels.size() >= options_.most_of_file || taken_[file.group] >= options_.most) break;
        if (!names_.emplace(file.group, kernel).second) {
          ++table_.repeated;
          continue;
        }
      }
      ++taken_[file.group];
      kernels.insert(kernel);
      table_.kernels.push_back({file.group, title(file, kernel), is_held_out(file, kernel), found->second.instructions,
                                estimate.instructions, found->second.registers, estimate.registers, estimate.copies});
    }
    return kernels;
  }

  // As many of the other spellings as asked for, chosen by a hash of file and spelling; and what the passes make of it.
  void compare_versions(const tests::CorpusFile& file, const std::string& text, const std::set<std::string>& kernels,
                        const ir::FiguresByFunction& real, const Estimates& estimates) {
    std::vector<tests::Version> versions;
    if (options_.versions > 0) versions = tests::versions_of(text);
    std::ranges::sort(versions, {}, [&](const tests::Version& version) {
      return std::hash<std::string>{}(file.path.substr(file.path.rfind('/') + 1) + version.name);
    });
    if (versions.size() > options_.versions) versions.resize(options_.versions);
    for (const std::string& passes : options_.passes)
      if (std::string changed = rewritten(text, passes); !changed.empty()) versions.push_back({passes, changed});
    for (const tests::Version& version : versions) {
      const std::optional<ir::FiguresByFunction> real_after = assembled_.figures(version.text, table_.architecture);
      if (!real_after) continue;
      for (const auto& [name, after] : estimates_of(version.text, capability_)) {
        const std::string kernel =
            tests::original_of(name, [&](const std::string& known) { return estimates.contains(known); });
        const auto before = real.find(kernel), changed = real_after->find(name);
        if (!kernels.contains(kernel) || before == real.end() || changed == real_after->end()) continue;
        table_.signs.push_back({file.group,
                                is_held_out(file, kernel),
                                {version.name, title(file, kernel), before->second.instructions,
                                 changed->second.instructions, estimates.at(kernel).instructions, after.instructions}});
      }
    }
  }

  const Options& options_;
  tests::AssembledTexts& assembled_;
  uint32_t capability_;
  tests::TargetTable table_;
  std::map<std::string, uint32_t> taken_;               // kernels by group
  std::set<std::pair<std::string, std::string>> names_; // group and kernel
};

void print_rows(const tests::TargetTable& table) {
  for (const tests::KernelRow& row : table.kernels)
    std::printf("row\t%s\t%s\t%s\t%s\t%u\t%u\t%u\t%u\t%u\n", table.architecture.c_str(), row.group.c_str(),
                row.kernel.c_str(), row.held_out ? "held-out" : "looked-at", row.real, row.estimated,
                row.real_registers, row.estimated_registers, row.copies);
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  if (const char* folder = std::getenv("PTXREWRITE_PTX_CORPUS")) options.corpus = folder;
  cli::Application app("the lowering beside ptxas over public kernels and samples");
  app.add_option("files", options.files, "PTX files: the group of samples");
  app.add_option("--corpus", options.corpus, "folder with a folder of PTX files a group; $PTXREWRITE_PTX_CORPUS");
  app.add_option("--groups", options.groups, "of these folders alone").delimiter(',');
  app.add_option("--architectures", options.architectures, "sm_80,sm_90 ...").delimiter(',');
  app.add_option("--most", options.most, "kernels of a group");
  app.add_option("--most-of-file", options.most_of_file, "kernels of a file");
  app.add_option("--most-bytes", options.most_bytes, "of a file; larger ones are left out");
  app.add_option("--least", options.least, "machine instructions of a kernel");
  app.add_option("--versions", options.versions, "other spellings of each file that are compared with it");
  app.add_option("--passes", options.passes, "and what these passes make of it").one_each();
  app.add_option("--worst", options.worst, "kernels and versions of the looked-at half to show");
  app.add_option("--results", options.results, "file that keeps what ptxas makes");
  app.add_flag("--rows", options.rows, "every kernel in a line of its own, for scripts");
  if (std::optional<int> code = app.parse(argc, argv)) return *code;
  if (!find_ptxas()) {
    std::puts("no ptxas: skipped");
    return 77;
  }
  std::vector<tests::CorpusFile> files;
  for (const std::string& path : options.files)
    files.push_back({samples_group, path});
  if (options.corpus.empty())
    std::puts("no public kernels: name a folder by --corpus or PTXREWRITE_PTX_CORPUS");
  else
    std::ranges::copy(tests::corpus_files(options.corpus, options.groups, options.most_bytes),
                      std::back_inserter(files));
  tests::AssembledTexts assembled(options.results);
  std::vector<tests::TargetTable> tables;
  for (const std::string& architecture : options.architectures) {
    Measurement measurement(architecture, options, assembled);
    for (const tests::CorpusFile& file : files)
      measurement.add(file);
    tables.push_back(measurement.table());
    if (options.rows) print_rows(tables.back());
    tests::print_table(tables.back(), options.worst);
    std::fflush(stdout);
  }
  tests::print_summary(tables);
  return 0;
}
