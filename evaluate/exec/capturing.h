// Writes launches of a program as launch files: `exec --capture`. The memory that a launch accesses is found by
// executing it again on a copy of the memory.
#pragma once

#include "evaluate/exec/launch_image.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

struct CaptureSettings {
  std::string folder;    // must exist
  uint64_t launches = 1; // number of launches per kernel, from the first one
  bool hottest = false;  // instead: the launch that executes the most instructions
};

class CapturingHook final : public cuda::LaunchHook {
public:
  CapturingHook(CaptureSettings settings, std::shared_ptr<LaunchImages> images)
      : settings_(std::move(settings)), images_(std::move(images)) {}

  void before(cuda::LaunchCall& call) override;
  void after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) override;
  cuda::ReportPart report() override;

private:
  struct Captured {
    uint64_t launch = 0; // index among its kernel's launches, from 1
    std::string file;
    int process = 0; // process ID of the writer
    uint64_t buffers = 0, bytes = 0;
    uint64_t warp_instructions = 0, thread_instructions = 0;
    bool has_addresses = false; // memory contains pointers: it runs only on the emulator
    std::string problem;        // why there is no file
  };
  struct KernelCaptures {
    std::string name;
    uint64_t launches = 0;
    std::vector<Captured> captured;
  };

  KernelCaptures& captures_of(const cuda::Kernel& kernel);

  CaptureSettings settings_;
  std::shared_ptr<LaunchImages> images_;
  std::vector<std::unique_ptr<KernelCaptures>> kernels_; // in the order of first launches
  std::map<const cuda::Kernel*, KernelCaptures*> places_;
  LaunchInput* pending_ = nullptr; // of the current launch, if it is to be captured
};

} // namespace ptxrewrite::evaluate
