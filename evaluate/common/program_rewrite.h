// Modules of a running program rewritten when they are loaded, and a table of what its launches ran: for `exec`, on the
// emulator and on a GPU.
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

// A module as it is run in the place of the program's.
struct RewrittenModule {
  std::unique_ptr<ir::Module> module; // nullptr: the passes changed nothing
  std::string text;
  std::set<std::string> changed; // kernels whose own text is another one: no condition decides
};

// Of the kernels that passes changed, those that cannot run as they are now.
using RefusedKernels = std::function<std::vector<std::string>(const ir::Module&, const std::set<std::string>& kernels)>;

// The legal form, chosen by the static machine model: no assembler is started within the program. Kernels that
// `refused` names stay as they were. Errors: passes that fail, a result that cannot be read.
Result<RewrittenModule> rewrite_for_program(const ir::Module& original, const std::string& passes,
                                            const RefusedKernels& refused = {});

// A kernel's launches.
struct LaunchCounts {
  std::string kernel;
  uint64_t rewritten = 0, original = 0;
  std::map<std::string, uint64_t> reasons; // why the original ran, and how often
};

// As much of a text as a table has room for.
std::string beginning(const std::string& text);
std::string launch_counts_text(const std::string& passes, const std::vector<LaunchCounts>& counts);
// {"passes": ..., "kernels": [...]}
std::string launch_counts_json(const std::string& passes, const std::vector<LaunchCounts>& counts);

} // namespace ptxrewrite::evaluate
