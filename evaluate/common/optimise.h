// The implementation of `opt` for one module: runs the passes, weighs results with the assembler, returns the text and
// its side file.
#pragma once

#include "ir/core/module.h"
#include "ir/machine/figures/figures.h"
#include "transforms/manager/pipeline.h"

#include <memory>
#include <string>

namespace ptxrewrite::evaluate {

// The pipeline of -O: the legal rewrites that are known to be profitable, each before those that it enables.
extern const char* const optimising_pipeline;

struct OptimiseSettings {
  transforms::RunOptions run;
  bool gives_back = false;    // -O: restores functions for which the assembler generates more code than before
  bool wants_figures = false; // compute Optimised::before and after, regardless of cost
  bool may_run_ptxas = true;  // if false, nothing is weighed
  std::string architecture;   // the assembler's target ("sm_90"); "": the text's own target
  unsigned jobs = 1;          // processes that share the kernels, with the same result; 1: none but this one
};

struct Optimised {
  std::unique_ptr<ir::Module> module; // rewritten, or as it was read if several processes have shared the kernels
  transforms::PipelineReport report;
  std::string text;
  std::string side_file;            // "" if no kernel has variants
  std::vector<Diagnostic> warnings; // with ranges in the module's source
  ir::FiguresByFunction before, after;
  std::string no_figures; // why figures are missing
  bool is_shared_out = false;
};

// `module` must be as it was read. Fails on defects of a pass, found by RunOptions::verify_each.
Result<Optimised> optimise(std::unique_ptr<ir::Module> module, const transforms::Pipeline& pipeline,
                           const OptimiseSettings& settings);

} // namespace ptxrewrite::evaluate
