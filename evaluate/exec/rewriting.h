// Modules of a program rewritten when they are loaded, and which launches ran what the passes made: `exec --passes`.
#pragma once

#include "cuda/context/launch_hook.h"
#include "evaluate/common/program_rewrite.h"
#include "launch/variants.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace ptxrewrite::evaluate {

// Of `kernels`, those with instructions that the emulator does not have.
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
    std::optional<launch::Variants> variants; // nothing: the module runs as the program brought it
    std::set<std::string> changed;
    std::string reason; // why nothing of it was rewritten
  };
  std::string passes_;
  std::map<const ir::Module*, KnownModule> modules_; // by the program's own
  std::vector<LaunchCounts> counts_;                 // in the order of first launches
  std::map<const cuda::Kernel*, size_t> places_;     // in counts_
};

} // namespace ptxrewrite::evaluate
