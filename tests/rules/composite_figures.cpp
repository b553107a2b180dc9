// Results of the legal form of `composite` on kernels, by ptxas: instructions and registers before and after, and the
// applied rules.
//
//   composite_figures [--passes P] [--arch sm_80 ...] [--no-ptxas] [--all] PTX_FILE ...
//
// One line for each kernel that changed (--all: for each), then a summary for each architecture. With --no-ptxas the
// machine model chooses; the figures are ptxas's nevertheless.
#include "cli/options.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/machine/figures/figures.h"
#include "transforms/manager/pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

namespace {

using namespace ptxrewrite;

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> architectures{"sm_80", "sm_90"};
  std::string passes = "composite";
  bool ask_ptxas = true, all = false;
};

struct Row {
  std::string file, kernel, rules;
  std::vector<ir::MachineFigures> before, after; // by architecture
};

Result<std::unique_ptr<ir::Module>> read(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error{"cannot be read", {}};
  std::ostringstream text;
  text << stream.rdbuf();
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile(file, text.str()), diagnostics);
  if (!module) return Error{diagnostics.list().empty() ? "is no PTX" : diagnostics.list()[0].message, {}};
  return module;
}

// The rules of a remark: the text before the figures.
std::string rules_of(const transforms::PipelineReport& report, const std::string& kernel) {
  for (const transforms::Remark& remark : report.remarks)
    if (remark.function == kernel && !remark.text.starts_with("left as it is"))
      return remark.text.substr(0, remark.text.find(';'));
  return {};
}

Status measure(const Options& options, const std::string& file, std::vector<Row>& rows) {
  Result<std::unique_ptr<ir::Module>> module = read(file);
  if (!module) return module.error();
  const std::string before{(*module)->source.text()};
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(options.passes);
  if (!pipeline) return pipeline.error();
  transforms::RunOptions run;
  run.run_ptxas = options.ask_ptxas;
  run.verify_each = true;
  Result<transforms::PipelineReport> report = transforms::run_pipeline(**module, *pipeline, run);
  if (!report) return report.error();
  const std::string after = ir::print(**module);
  std::map<std::string, Row> by_kernel;
  for (const std::string& architecture : options.architectures) {
    Result<ir::FiguresByFunction> old_figures = ir::machine_figures(before, architecture);
    if (!old_figures) return old_figures.error();
    Result<ir::FiguresByFunction> new_figures = ir::machine_figures(after, architecture);
    if (!new_figures) return new_figures.error();
    for (const std::string& kernel : report->functions) {
      const auto then = old_figures->find(kernel), now = new_figures->find(kernel);
      if (then == old_figures->end() || now == new_figures->end()) continue;
      Row& row = by_kernel[kernel];
      row.before.push_back(then->second);
      row.after.push_back(now->second);
    }
  }
  for (auto& [kernel, row] : by_kernel) {
    row.file = file.substr(file.rfind('/') + 1);
    row.kernel = kernel;
    row.rules = rules_of(*report, kernel);
    rows.push_back(std::move(row));
  }
  return {};
}

void print(const Options& options, const Row& row) {
  std::printf("%s %s:", row.file.c_str(), row.kernel.c_str());
  for (size_t i = 0; i < row.before.size(); ++i)
    std::printf(" %s %u -> %u (registers %u -> %u%s)", options.architectures[i].c_str(), row.before[i].instructions,
                row.after[i].instructions, row.before[i].registers, row.after[i].registers,
                row.after[i].spilled_bytes > row.before[i].spilled_bytes ? ", spills more" : "");
  std::printf("  [%s]\n", row.rules.c_str());
}

void summarise(const Options& options, const std::vector<Row>& rows, size_t index) {
  double logarithms = 0, of_changed = 0, worst = 1;
  size_t changed = 0, fewer = 0, more = 0, fewer_registers = 0, more_registers = 0;
  for (const Row& row : rows) {
    const ir::MachineFigures &then = row.before[index], &now = row.after[index];
    const double ratio = double(now.instructions) / std::max(1u, then.instructions);
    logarithms += std::log(ratio);
    worst = std::max(worst, ratio);
    if (row.rules.empty()) continue;
    ++changed;
    of_changed += std::log(ratio);
    fewer += now.instructions < then.instructions;
    more += now.instructions > then.instructions;
    fewer_registers += now.registers < then.registers;
    more_registers += now.registers > then.registers;
  }
  std::printf("%s: %zu kernels, %zu rewritten; instructions: fewer in %zu, more in %zu, geometric mean %.4f (of the "
              "rewritten %.4f), worst %.4f; registers: fewer in %zu, more in %zu\n",
              options.architectures[index].c_str(), rows.size(), changed, fewer, more,
              std::exp(logarithms / std::max<size_t>(1, rows.size())),
              std::exp(of_changed / std::max<size_t>(1, changed)), worst, fewer_registers, more_registers);
}

// The number of rewritten kernels that use each rule.
void count_rules(const std::vector<Row>& rows) {
  std::map<std::string, size_t> kernels;
  for (const Row& row : rows) {
    std::istringstream list(row.rules);
    for (std::string rule; std::getline(list, rule, ',');) {
      rule = rule.substr(std::min(rule.find_first_not_of(' '), rule.size()));
      ++kernels[rule.substr(0, rule.find(' '))];
    }
  }
  for (const auto& [rule, count] : kernels)
    std::printf("%s: %zu kernels\n", rule.c_str(), count);
}

} // namespace

int main(int count, char** arguments) {
  Options options;
  cli::Application application("composite's legal form, by ptxas");
  application.add_option("PTX_FILE", options.files, "PTX files").required();
  application.add_option("--passes", options.passes, "default composite");
  application.add_option("--arch", options.architectures, "default sm_80 sm_90").one_each();
  application.add_flag("!--no-ptxas", options.ask_ptxas, "the machine model chooses");
  application.add_flag("--all", options.all, "print every kernel");
  if (std::optional<int> code = application.parse(count, arguments)) return *code;
  std::vector<Row> rows;
  for (const std::string& file : options.files) {
    const size_t first = rows.size();
    if (Status status = measure(options, file, rows); !status)
      std::fprintf(stderr, "%s: left out: %s\n", file.c_str(), status.error().message.c_str());
    for (size_t i = first; i < rows.size(); ++i)
      if (options.all || !rows[i].rules.empty()) print(options, rows[i]);
    std::fflush(stdout);
  }
  for (size_t i = 0; i < options.architectures.size(); ++i)
    summarise(options, rows, i);
  count_rules(rows);
  return 0;
}
