// Pipelines: the sequence of passes to run over a module, the text that describes it, and the pass manager that runs
// it.
//
//   Result<Pipeline> pipeline = parse_pipeline("r2d2(limit=8,persistent),dce");
//   Result<PipelineReport> report = run_pipeline(module, *pipeline, {.verify_each = true});
//
// Each function with a body is converted to SSA form once, goes through all passes, and is converted out of SSA form. A
// function that has no SSA form is left unchanged, with a remark. If passes ask ptxas, they run again over the function
// until all their questions have answers (assemblies.h); reports and prints come from the last run.
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
  std::vector<PipelineStep> steps; // if empty, functions are only converted to SSA form and back
};

// `name`, `name(option=value,flag)`, separated by commas; blanks are ignored; a value may be quoted with "". Checks
// that passes and options exist and that numbers are numbers. The error's range points into `text`.
Result<Pipeline> parse_pipeline(std::string_view text);
// Returns text that parses to the same pipeline.
std::string to_string(const Pipeline& pipeline);

// The stages that a trace option selects: names of passes, `construct-ssa`, `destruct-ssa`, or `all`.
struct StageFilter {
  std::vector<std::string> names;
  bool matches(std::string_view stage) const;
};

struct RunOptions {
  OutputForm form = OutputForm::legal;
  std::string functions = "*";       // glob over names; the other functions stay as they were read
  std::vector<std::string> excluded; // names that match the glob but are to stay as they were read
  std::vector<std::string> assumptions;
  bool run_ptxas = false;   // passes may ask ptxas for the cost of a rewrite; results depend on the installed version
  Effort effort;            // with run_ptxas, for each function
  bool verify_each = false; // check the IR's rules and the passes' change reports after each stage
  StageFilter print_before;
  StageFilter print_after;
  bool print_changed = false;                  // after each stage that changed the text
  uint64_t stop_after = UINT64_MAX;            // stop after this many pass executions over all functions (bisection)
  std::function<void(std::string_view)> print; // receives the output of the print options
};

struct StageTime {
  std::string stage;
  uint64_t runs = 0;
  uint64_t changes = 0; // runs that changed something
  double seconds = 0;   // wall clock
};

struct PipelineReport {
  std::vector<std::string> functions; // the functions that the passes ran over, by name, in text order
  std::vector<Remark> remarks;
  std::vector<Obligation> ledger;
  std::map<std::string, int64_t> statistics;
  std::vector<StageTime> times;   // in order of first execution
  uint64_t executions = 0;        // of passes; compared with stop_after
  uint64_t assemblies = 0;        // runs of ptxas for passes, including those whose results came from a store
  uint64_t most_assemblies = 0;   // the largest number for one function
  uint64_t assembled_kernels = 0; // in these runs
  bool ptxas_refused = false;     // ptxas refused one of these kernels; passes may have chosen by the machine model
                                  // instead
};

// Errors are defects of a pass or of this program, found by verify_each; after an error, the module must not be used.
Result<PipelineReport> run_pipeline(ir::Module& module, const Pipeline& pipeline, const RunOptions& options = {});

// Does `name` match a glob with * ? [...]?
bool matches_glob(const std::string& glob, std::string_view name);

// Loads a shared library whose passes register themselves. Fails if it cannot be loaded or registers no new pass.
Status load_pass_library(const std::string& path);

} // namespace ptxrewrite::transforms
