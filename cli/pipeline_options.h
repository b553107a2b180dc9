// The options of `opt` and `diff` that select the passes to run over a module.
#pragma once

#include "cli/command.h"
#include "transforms/manager/pipeline.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::cli {

struct PipelineOptions {
  std::string passes;
  bool passes_given = false;
  bool optimise = false; // -O
  std::string form = "legal";
  std::string gpu; // "sm_90"; empty: the file's own target
  std::string kernels = "*";
  std::vector<std::string> assumptions;
  std::vector<std::string> libraries;
  bool persistent = false; // sets the option with this name in every pass that has it
  std::string specialise;  // likewise
  std::string carrier;     // likewise
  bool verify_each = false;
  bool no_ptxas = false;
  std::string effort;
};

void add_pipeline_options(Options& command, PipelineOptions& options);
// Adds the option that limits the use of ptxas.
void add_effort_option(Options& command, PipelineOptions& options);

// Loads the pass libraries and parses the pipeline. Shows errors and returns nothing if there are any.
std::optional<transforms::Pipeline> make_pipeline(const PipelineOptions& options, const Session& session);

// The run options that follow from these options.
transforms::RunOptions make_run_options(const PipelineOptions& options);

} // namespace ptxrewrite::cli
