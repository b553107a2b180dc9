// Modules of a program rewritten when they are loaded, and which launches ran what the passes made: `exec --passes`.
#pragma once

#include "cuda/context/launch_hook.h"
#include "launch/variants.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace ptxrewrite::cli {

// A module as it is run in the place of the program's.
struct RewrittenModule {
  std::unique_ptr<ir::Module> module; // nullptr: the passes changed nothing
  std::set<std::string> changed;      // kernels whose own text is another one: no condition decides
};

// The legal form, chosen by the static machine model; kernels that the emulator would refuse then stay as they were.
// Errors: passes that fail, a result that cannot be read.
Result<RewrittenModule> rewrite_for_program(const ir::Module& original, const std::string& passes);

// As much of a text as a table has room for; the JSON report has the whole.
std::string beginning(const std::string& text);

class RewritingHook final : public cuda::LaunchHook {
public:
  explicit RewritingHook(std::string passes) : passes_(std::move(passes)) {}

  std::unique_ptr<ir::Module> replacement(const ir::Module& original) override;
  void before(cuda::LaunchCall& call) override;
  void after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) override;
  cuda::ReportPart report() override;

private:
  struct KnownModule {
    std::optional<launch::Variants> variants; // nothing: the module runs as the program brought it
    std::set<std::string> changed;
    std::string reason; // why nothing of it was rewritten
  };
  struct KernelCounts {
    std::string name;
    uint64_t rewritten = 0, original = 0;    // launches
    std::map<std::string, uint64_t> reasons; // why the original ran, and how often
  };

  std::string passes_;
  std::map<const ir::Module*, KnownModule> modules_; // by the program's own
  std::vector<KernelCounts> counts_;                 // in the order of first launches
  std::map<const cuda::Kernel*, size_t> places_;     // in counts_
};

} // namespace ptxrewrite::cli
