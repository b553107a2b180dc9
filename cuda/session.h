// Runs a launch plan on a device: buffers are made and filled, the launches run in order, outputs are fetched.
#pragma once

#include "cuda/device.h"
#include "launch/variants.h"

#include <functional>
#include <memory>

namespace ptxrewrite::cuda {

// What an error's range points into.
enum class ErrorPlace : uint8_t { launch_file, module };

struct SessionOptions {
  // Called before each launch; false leaves the rest out.
  std::function<bool(size_t index, const launch::Launch&)> before_launch;
  // Chooses the entry that runs in a kernel's place; nullptr: the kernels that the plan names.
  const launch::Variants* variants = nullptr;
  // What buffers hold in the beginning, by index in the plan, when it was made before; nullptr: it is made now.
  const std::vector<std::vector<std::byte>>* contents = nullptr;
  bool keep_runs = true;  // SessionResult::runs; else only the last one's
  bool fetch_all = false; // buffers that are no output, too
  ErrorPlace* error_place = nullptr;
};

// One launch of the plan as it ran.
struct SessionRun : KernelRun {
  size_t launch = 0;                // index in the plan
  std::string entry;                // that ran
  bool is_persistent = false;       // the grid was one resident wave
  std::vector<std::string> reasons; // why variants of it did not
  std::string registers;            // of a hardware form: what it takes of the machine's register file
};

struct SessionResult {
  std::vector<SessionRun> runs;                // one per launch that ran
  std::vector<std::vector<std::byte>> buffers; // by index in the plan, as they are in the end; empty if not fetched
  std::vector<std::vector<std::byte>> variables;
  std::optional<size_t> failed_launch; // index of the launch whose run has a failure: the last that ran
};

// Do the buffers of a plan fit the machine's memory so many times over? Without asking, the machine would find out
// late.
Status check_memory(const launch::LaunchPlan& plan, unsigned copies);

// A plan's memory on a device, and its launches. run_plan is one pass over it; `bench` makes many.
class PlanOnDevice {
public:
  // Allocates and fills. Plan, device and options must outlive it. Memory is given back in the end.
  static Result<std::unique_ptr<PlanOnDevice>> make(const launch::LaunchPlan& plan, Device& device,
                                                    const SessionOptions& options);
  ~PlanOnDevice();
  PlanOnDevice(const PlanOnDevice&) = delete;
  PlanOnDevice& operator=(const PlanOnDevice&) = delete;

  // Fills a buffer of the plan again.
  Status restore(size_t buffer);
  // For the module in use. Once after each load; again where kernels write variables.
  Status fill_variables(const ir::Module& module);
  // Launch `index` of the plan with the module in use. A persistent grid has as many blocks as fit on the device at
  // once, in x, but no more than the planned grid.
  Result<SessionRun> launch(size_t index, const ir::Module& module, const launch::Variants* variants);
  // The buffers as they are now: into result.buffers and result.variables.
  Status fetch(SessionResult& result);

private:
  PlanOnDevice(const launch::LaunchPlan& plan, Device& device, const SessionOptions& options)
      : plan_(plan), device_(device), options_(options) {}
  Status allocate();
  Status place();
  Status encode_tensor_maps();
  Status choose_textures(const launch::Launch& launch, const ir::Function& kernel, KernelLaunch& kernel_launch);

  const launch::LaunchPlan& plan_;
  Device& device_;
  const SessionOptions& options_;
  launch::DeviceAddresses addresses_;
  std::vector<TextureHandles> textures_; // by index in the plan
};

// Errors: memory, contents that cannot be made, arguments that do not fit, instructions that the device does not have.
// A fault of a kernel is no error: see SessionResult::failed_launch; buffers are then empty where they cannot be read.
Result<SessionResult> run_plan(const launch::LaunchPlan& plan, const ir::Module& module, Device& device,
                               const SessionOptions& options = {});

} // namespace ptxrewrite::cuda
