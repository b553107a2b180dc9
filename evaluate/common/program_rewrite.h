// Rewrites modules of a running program when they are loaded, and counts which code its launches ran: for `exec`, on
// the emulator and on a GPU.
#pragma once

#include "ir/core/module.h"
#include "support/result.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// The module that is run instead of the program's.
struct RewrittenModule {
  std::unique_ptr<ir::Module> module; // nullptr: the passes changed nothing
  std::string text;
  std::set<std::string> changed; // kernels that are rewritten without conditions
};

// Returns those of the changed kernels that cannot be run in their new form.
using RefusedKernels = std::function<std::vector<std::string>(const ir::Module&, const std::set<std::string>& kernels)>;

// Rewrites in legal form, with choices by the static machine model: the assembler is not run inside the program.
// Kernels that `refused` returns keep their original form. Fails if a pass fails or the result cannot be parsed.
Result<RewrittenModule> rewrite_for_program(const ir::Module& original, const std::string& passes,
                                            const RefusedKernels& refused = {});

// Launches of one kernel.
struct LaunchCounts {
  std::string kernel;
  uint64_t rewritten = 0, original = 0;
  std::map<std::string, uint64_t> reasons; // why originals were launched, and how often
};

// Truncates a text to fit into a table.
std::string beginning(const std::string& text);
std::string launch_counts_text(const std::string& passes, const std::vector<LaunchCounts>& counts);
// {"passes": ..., "kernels": [...]}
std::string launch_counts_json(const std::string& passes, const std::vector<LaunchCounts>& counts);

} // namespace ptxrewrite::evaluate
