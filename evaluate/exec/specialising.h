// Kernels for launches that a program repeats: `exec --specialise`. Precedes the hook that rewrites modules, which
// leaves a launch alone that runs such a kernel.
#pragma once

#include "cuda/context/launch_hook.h"
#include "evaluate/common/specialised_kernel.h"
#include "launch/repeated_launches.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace ptxrewrite::evaluate {

class SpecialisingHook final : public cuda::LaunchHook {
public:
  // `times`: the launch by which a kernel is made for it; `passes`: what else rewrites it, may be empty.
  SpecialisingHook(uint64_t times, std::string passes) : times_(times), passes_(std::move(passes)) {}

  std::unique_ptr<ir::Module> replacement(const ir::Module& original) override;
  void before(cuda::LaunchCall& call) override;
  void after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) override;
  cuda::ReportPart report() override;

private:
  struct Made {
    SpecialisedKernel code;
    std::unique_ptr<emulator::Program> program;
  };
  struct Kernel {
    Kernel(const ir::Module& module, const ir::Function& kernel) : keys(module, kernel) {}
    launch::LaunchKeys keys;
    launch::RepeatedLaunches repeated;
    std::map<std::string, Made> made; // by the launch's key
    size_t place = 0;                 // in counts_
  };
  Kernel* kernel_of(const cuda::LaunchCall& call);
  void make(cuda::LaunchCall& call, Kernel& kernel, const std::string& key);

  uint64_t times_;
  std::string passes_;
  std::map<const ir::Module*, std::map<std::string, Kernel, std::less<>>> modules_; // by the program's module
  std::vector<SpecialisedCounts> counts_;                                           // in the order of first launches
};

} // namespace ptxrewrite::evaluate
