// Rewrites modules of a program when they are loaded, and counts which launches ran rewritten code: `exec --passes`.
#pragma once

#include "cuda/context/launch_hook.h"
#include "evaluate/common/program_rewrite.h"
#include "launch/variants.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace ptxrewrite::evaluate {

// Returns those of `kernels` that use instructions the emulator does not support.
std::vector<std::string> kernels_not_emulated(const ir::Module& module, const std::set<std::string>& kernels);

class RewritingHook final : public cuda::LaunchHook {
public:
  explicit RewritingHook(std::string passes) : passes_(std::move(passes)) {}

  std::unique_ptr<ir::Module> replacement(const ir::Module& original) override;
  void before(cuda::LaunchCall& call) override;
  void after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) override;
  cuda::ReportPart report() override;

private:
  struct KnownModule {
    std::optional<launch::Variants> variants; // empty: the program's own module runs
    std::set<std::string> changed;
    std::string reason; // why it was not rewritten
  };
  std::string passes_;
  std::map<const ir::Module*, KnownModule> modules_; // by the program's module
  std::vector<LaunchCounts> counts_;                 // in the order of first launches
  std::map<const cuda::Kernel*, size_t> places_;     // index in counts_
};

} // namespace ptxrewrite::evaluate
