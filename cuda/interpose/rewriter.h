// What rewrites the modules of a program on a GPU. evaluate/interpose has it and sets it when the library is loaded.
#pragma once

#include "ir/core/module.h"
#include "launch/variants.h"
#include "support/result.h"

#include <memory>
#include <set>
#include <string>

namespace ptxrewrite::cuda::interpose {

struct RewrittenProgram {
  std::unique_ptr<ir::Module> module; // the original's kernels and their variants; nullptr: the passes change nothing
  std::string text;                   // of the module
  std::set<std::string> changed;      // kernels that are rewritten for all launches
};

// `passes`: a pipeline as `opt -p` takes it. Errors: text that cannot be read, passes that fail.
using Rewriter = Result<RewrittenProgram> (*)(const std::string& ptx, const std::string& label,
                                              const std::string& passes);
void set_rewriter(Rewriter rewriter);
// Error where none is set.
Result<RewrittenProgram> rewrite_program(const std::string& ptx, const std::string& label, const std::string& passes);

} // namespace ptxrewrite::cuda::interpose
