// Executes each launch of a program a second time with rewritten kernels, on a copy of its memory: `exec --verify`. The
// program itself only sees results of the original.
#pragma once

#include "evaluate/exec/launch_image.h"
#include "evaluate/exec/rewriting.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

class ComparingHook final : public cuda::LaunchHook {
public:
  ComparingHook(std::string passes, std::shared_ptr<LaunchImages> images)
      : passes_(std::move(passes)), images_(std::move(images)) {}

  void before(cuda::LaunchCall& call) override;
  void after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) override;
  cuda::ReportPart report() override;

private:
  struct KnownModule {
    RewrittenModule rewritten;
    launch::Variants variants; // of rewritten.module
    std::string objection;     // why no launch is compared
  };
  struct KernelSums {
    std::string name;
    uint64_t launches = 0;
    uint64_t compared = 0;     // number of launches compared with rewritten code
    uint64_t bytes = 0;        // changed by either of them
    uint64_t differing = 0;    // bytes
    uint64_t unordered = 0;    // bytes that also differ between orders of the original's blocks and warps
    uint64_t bad_launches = 0; // with differing bytes, or with a fault of the rewritten kernel
    uint64_t instructions = 0; // warp instructions of the original in the compared launches
    uint64_t rewritten_instructions = 0;
    std::string first;                       // description of the first difference
    std::map<std::string, uint64_t> reasons; // why launches were not compared
  };
  // The result of the rewritten kernel for the current launch.
  struct Pending {
    LaunchInput* input = nullptr;
    const KnownModule* module = nullptr;
    cuda::SessionResult result;
  };

  KnownModule& module_of(const ir::Module& original);
  KernelSums& sums_of(const cuda::Kernel& kernel);
  Result<cuda::SessionResult> run(const LaunchInput& input, const ir::Module& module, const launch::Variants* variants,
                                  const cuda::LaunchCall& call, bool reversed, uint64_t order_seed);
  void compare(const cuda::LaunchCall& call, KernelSums& sums);
  std::vector<cuda::SessionResult> other_orders(const cuda::LaunchCall& call);

  std::string passes_;
  std::shared_ptr<LaunchImages> images_;
  std::map<const ir::Module*, std::unique_ptr<KnownModule>> modules_; // by the program's module
  std::vector<std::unique_ptr<KernelSums>> sums_;                     // in the order of first launches
  std::map<const cuda::Kernel*, KernelSums*> places_;
  std::optional<Pending> pending_;
};

} // namespace ptxrewrite::evaluate
