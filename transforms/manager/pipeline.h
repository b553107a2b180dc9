// Pipelines: which passes run over a module in which order, how that is spelled, and the pass manager that runs them.
//
//   Result<Pipeline> pipeline = parse_pipeline("r2d2(limit=8,persistent),dce");
//   Result<PipelineReport> report = run_pipeline(module, *pipeline, {.verify_each = true});
//
// Each function with a body goes into SSA form once, through all passes, and out of SSA form. A function that has no
// SSA form is left as it was, with a remark. Where passes ask ptxas, they run again over the function until all of them
// had its answers (assemblies.h); reports and prints are of the last time.
#pragma once

#include "transforms/manager/assemblies.h"
#include "transforms/manager/pass.h"

#include <functional>

namespace ptxrewrite::transforms {

struct PipelineStep {
  PassDescription pass;
  PassOptions options;
};

struct Pipeline {
  std::vector<PipelineStep> steps; // none: into SSA form and out of it
};

// `name`, `name(option=value,flag)`, separated by commas; blanks do not matter; a value may be quoted with "". Checks
// that passes and options exist and that numbers are numbers. The error's range points into `text`.
Result<Pipeline> parse_pipeline(std::string_view text);
// The text that parses to the same pipeline.
std::string to_string(const Pipeline& pipeline);

// Which stages a trace option is about: names of passes, `construct-ssa`, `destruct-ssa`, or `all`.
struct StageFilter {
  std::vector<std::string> names;
  bool matches(std::string_view stage) const;
};

struct RunOptions {
  OutputForm form = OutputForm::legal;
  std::string functions = "*";       // glob over names; others stay as they were read
  std::vector<std::string> excluded; // names that the glob selects, but that stay as they were read
  std::vector<std::string> assumptions;
  bool run_ptxas = false;   // passes may ask the assembler what a rewrite costs; results depend on the one installed
  Effort effort;            // with run_ptxas, for each function
  bool verify_each = false; // IR rules and honest change reports after each stage
  StageFilter print_before;
  StageFilter print_after;
  bool print_changed = false;                  // after each stage that changed the text
  uint64_t stop_after = UINT64_MAX;            // only so many pass executions, counted over all functions (bisection)
  std::function<void(std::string_view)> print; // receives what the print options ask for
};

struct StageTime {
  std::string stage;
  uint64_t runs = 0;
  uint64_t changes = 0; // runs that changed something
  double seconds = 0;   // wall clock
};

struct PipelineReport {
  std::vector<std::string> functions; // that were run over, by name, in the order of the text
  std::vector<Remark> remarks;
  std::vector<Obligation> ledger;
  std::map<std::string, int64_t> statistics;
  std::vector<StageTime> times;   // in order of first execution
  uint64_t executions = 0;        // of passes; what stop_after counts
  uint64_t assemblies = 0;        // runs of ptxas for passes, whether a store has kept their results or not
  uint64_t most_assemblies = 0;   // for one function
  uint64_t assembled_kernels = 0; // in these runs
  bool ptxas_refused = false;     // one of these kernels: passes may have chosen by the model
};

// Errors are defects of a pass or of this program, found by verify_each; the module is not to be used then.
Result<PipelineReport> run_pipeline(ir::Module& module, const Pipeline& pipeline, const RunOptions& options = {});

// Does `name` match a glob with * ? [...]?
bool matches_glob(const std::string& glob, std::string_view name);

// Loads a shared library whose passes register themselves. Errors: it cannot be loaded, or it brings no new pass.
Status load_pass_library(const std::string& path);

} // namespace ptxrewrite::transforms
