// What `opt` makes of one module: the passes run, the assembler weighs, the text and its side file come out.
#pragma once

#include "ir/core/module.h"
#include "ir/machine/figures/figures.h"
#include "transforms/manager/pipeline.h"

#include <memory>
#include <string>

namespace ptxrewrite::evaluate {

// What -O stands for: the legal rewrites that are known to pay, in an order in which they help each other.
extern const char* const optimising_pipeline;

struct OptimiseSettings {
  transforms::RunOptions run;
  bool gives_back = false;    // functions that the assembler makes more of than before stay as they were: -O
  bool wants_figures = false; // Optimised::before and after, whatever it costs
  bool may_run_ptxas = true;  // else nothing is weighed
  std::string architecture;   // that the assembler counts for ("sm_90"); "": the text's own target
};

struct Optimised {
  std::unique_ptr<ir::Module> module;
  transforms::PipelineReport report;
  std::string text;
  std::string side_file;            // "": no kernel has variants
  std::vector<Diagnostic> warnings; // on the module's source
  ir::FiguresByFunction before, after;
  std::string no_figures; // why there are none
};

// `module` as it was read. Errors: defects of a pass, found by RunOptions::verify_each.
Result<Optimised> optimise(std::unique_ptr<ir::Module> module, const transforms::Pipeline& pipeline,
                           const OptimiseSettings& settings);

} // namespace ptxrewrite::evaluate
