// Runs a pipeline over a module's kernels in several processes, with the text and the report of run_pipeline().
//
// Each process has a copy of the module as read, rewrites a contiguous share of its kernels and returns their texts and
// its report. Processes instead of threads: passes intern names in their module.
#pragma once

#include "ir/core/module.h"
#include "transforms/manager/pipeline.h"

#include <string>

namespace ptxrewrite::evaluate {

// False if the result could depend on the order of the functions, or if there is nothing to share out: functions that
// are called, passes that number their labels across functions, traces and limits that count pass executions.
bool can_share_out(const ir::Module& module, const transforms::Pipeline& pipeline,
                   const transforms::RunOptions& options);

// Appends the text of the rewritten module to `text`; `module` stays as it was read, except for its hardware form.
// Errors are those of run_pipeline(), or say that a process failed.
Result<transforms::PipelineReport> run_shared_out(ir::Module& module, const transforms::Pipeline& pipeline,
                                                  const transforms::RunOptions& options, unsigned jobs,
                                                  std::string& text);

} // namespace ptxrewrite::evaluate
