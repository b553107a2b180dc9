// Runs a launch plan on a device: allocates and fills buffers, runs the launches in order, reads the outputs back.
#pragma once

#include "cuda/device.h"
#include "launch/variants.h"

#include <functional>
#include <memory>

namespace ptxrewrite::cuda {

// The text that an error's range refers to.
enum class ErrorPlace : uint8_t { launch_file, module };

struct SessionOptions {
  // Called before each launch; if it returns false, the remaining launches are skipped.
  std::function<bool(size_t index, const launch::Launch&)> before_launch;
  // Chooses the entry to run instead of a kernel; nullptr: the kernels that the plan names.
  const launch::Variants* variants = nullptr;
  // Initial contents of the buffers, by index in the plan, if already computed; nullptr: computed now.
  const std::vector<std::vector<std::byte>>* contents = nullptr;
  bool keep_runs = true;  // fill SessionResult::runs; otherwise keep only the last one
  bool fetch_all = false; // also buffers that are not outputs
  ErrorPlace* error_place = nullptr;
};

// One executed launch of the plan.
struct SessionRun : KernelRun {
  size_t launch = 0;                // index in the plan
  std::string entry;                // the entry that ran
  bool is_persistent = false;       // the grid was reduced to one resident wave
  std::vector<std::string> reasons; // why variants were not used
  std::string registers;            // of a hardware form: its use of the machine's register file
};

struct SessionResult {
  std::vector<SessionRun> runs;                // one for each executed launch
  std::vector<std::vector<std::byte>> buffers; // by index in the plan, final contents; empty if not fetched
  std::vector<std::vector<std::byte>> variables;
  std::optional<size_t> failed_launch; // index of the launch whose run has a failure, which is the last one
};

// Do this many copies of the plan's buffers fit into the memory limit (--memory)? Checked before anything is allocated.
Status check_memory(const launch::LaunchPlan& plan, unsigned copies);

// A plan's memory on a device, and its launches. run_plan executes it once; `bench` many times.
class PlanOnDevice {
public:
  // Allocates and fills the buffers. Plan, device and options must outlive the object. The destructor frees the memory.
  static Result<std::unique_ptr<PlanOnDevice>> make(const launch::LaunchPlan& plan, Device& device,
                                                    const SessionOptions& options);
  ~PlanOnDevice();
  PlanOnDevice(const PlanOnDevice&) = delete;
  PlanOnDevice& operator=(const PlanOnDevice&) = delete;

  // Restores a buffer's initial contents.
  Status restore(size_t buffer);
  // Fills variables of the module in use. Call it once after each load, and again if kernels write variables.
  Status fill_variables(const ir::Module& module);
  // Launches `index` of the plan with the module in use. A persistent grid has as many blocks as fit on the device at
  // once, in x, but no more than the planned grid.
  Result<SessionRun> launch(size_t index, const ir::Module& module, const launch::Variants* variants);
  // Copies the current contents of the buffers into result.buffers and result.variables.
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

// Fails if memory is exhausted, contents cannot be computed, arguments do not fit, or the device lacks an instruction.
// A fault of a kernel is not an error: see SessionResult::failed_launch; buffers that cannot be read are then empty.
Result<SessionResult> run_plan(const launch::LaunchPlan& plan, const ir::Module& module, Device& device,
                               const SessionOptions& options = {});

} // namespace ptxrewrite::cuda
