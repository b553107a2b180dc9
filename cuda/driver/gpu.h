// One GPU: memory, modules, launches and timers, with handles that release their resources.
#pragma once

#include "cuda/driver/library.h"
#include "ir/core/module.h"
#include "launch/launch_plan.h"
#include "support/diagnostic.h"
#include "support/source.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::driver {

struct GpuInfo {
  std::string name;           // "NVIDIA H200"
  std::string bus_id;         // "0000:3B:00.0": PCI's domain, bus, device and function
  int compute_capability = 0; // 90
  int multiprocessors = 0;
  int clock_khz = 0; // the maximum clock
  uint64_t l2_bytes = 0;
  uint64_t shared_bytes = 0; // per block, with opt-in
  int driver_version = 0;
};

struct FunctionInfo {
  int registers = 0;
  uint64_t static_shared_bytes = 0;
  uint64_t local_bytes = 0;
};

// What a launch demands of the GPU besides its shape. The first two need a driver of CUDA 12 or later.
struct LaunchTraits {
  bool cooperative = false;              // all blocks are resident at the same time
  std::optional<launch::Dim3> cluster{}; // blocks of a cluster; none: the kernel's own size
  // Offset of each parameter in the block of bytes. If empty, the block is passed to the driver as a whole, and driver
  // 580 on an H100 then misplaces parameters if one has an alignment of 64 bytes (a tensor map).
  std::vector<size_t> parameter_offsets{};
};

class Gpu;

// A module compiled by the driver.
class GpuModule {
public:
  GpuModule(Gpu& gpu, ModuleHandle handle) : gpu_(&gpu), handle_(handle) {}
  ~GpuModule();
  GpuModule(const GpuModule&) = delete;
  GpuModule& operator=(const GpuModule&) = delete;

  // Fails if there is no such kernel.
  Result<FunctionHandle> function(std::string_view name);
  Result<FunctionInfo> function_info(std::string_view name);
  // Address and size of a .global or .const variable.
  Result<std::pair<DevicePointer, uint64_t>> variable(std::string_view name) const;
  ModuleHandle handle() const { return handle_; }

private:
  Gpu* gpu_;
  ModuleHandle handle_;
  std::unordered_map<std::string, FunctionHandle> functions_;
};

class Gpu {
public:
  // Fails if there is no GPU (see Library::open, also for `library_path`).
  static Result<std::unique_ptr<Gpu>> open(const std::string& library_path = {}, int ordinal = 0);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuInfo& info() const { return info_; }
  const Library& driver() const { return *driver_; }

  // The memory is zeroed.
  Result<DevicePointer> allocate(uint64_t bytes, std::string_view name);
  Status release(DevicePointer address);
  Status write(DevicePointer address, std::span<const std::byte> bytes);
  Status read(DevicePointer address, std::span<std::byte> bytes);
  // Heap for malloc in kernels. Call it before the first launch of a kernel that calls malloc.
  Status set_heap_bytes(uint64_t bytes);
  Status fill(DevicePointer address, unsigned char value, uint64_t bytes);

  // Compiles PTX text; with an earlier .version if the driver does not support the text's own. Errors and warnings of
  // the driver's compiler become diagnostics on `source`; the returned error is the first of them.
  Result<std::unique_ptr<GpuModule>> load(const SourceFile& source, Diagnostics& diagnostics);

  // Loads a module from its printed text. Errors quote the line.
  Result<std::unique_ptr<GpuModule>> load(const ir::Module& module);

  // Starts a kernel asynchronously. `parameters` are the bytes of its .param space.
  Status start(GpuModule& module, std::string_view kernel, const launch::Dim3& grid, const launch::Dim3& block,
               uint32_t dynamic_shared, std::span<const std::byte> parameters, const LaunchTraits& traits = {});
  // Waits for the GPU. Returns the fault of a kernel, if any; the GPU's context is then unusable.
  Status finish();
  // Number of blocks of a kernel that fit on one multiprocessor.
  Result<int> occupancy(GpuModule& module, std::string_view kernel, const launch::Dim3& block, uint32_t dynamic_shared);
  // Number of blocks of such a launch that the whole GPU runs at the same time; at least 1.
  Result<uint64_t> resident_blocks(GpuModule& module, std::string_view kernel, const launch::Dim3& block,
                                   uint32_t dynamic_shared);
  // Has a kernel faulted? The context can then only be closed.
  bool lost() const { return lost_; }

  // Measures the time between two points of the stream, in seconds.
  class Timer {
  public:
    explicit Timer(Gpu& gpu);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    Status start();
    Status stop();
    Result<double> seconds(); // waits for the stop
  private:
    Gpu& gpu_;
    EventHandle first_ = nullptr, last_ = nullptr;
    ResultCode state_ = success;
  };

  // Converts a result code of the driver to a Status.
  Status check(const char* what, ResultCode status);

private:
  friend class GpuModule;
  Gpu() = default;
  Status start_with(const LaunchTraits& traits, FunctionHandle function, const launch::Dim3& grid,
                    const launch::Dim3& block, uint32_t dynamic_shared, void** parameters, void** extra);

  std::unique_ptr<Library> driver_;
  DeviceNumber device_ = 0;
  ContextHandle context_ = nullptr;
  GpuInfo info_;
  bool lost_ = false;
};

// Parses the driver's compiler log into diagnostics: `ptxas application ptx input, line 12; error   : ...`.
void read_jit_log(std::string_view log, const SourceFile& source, Diagnostics& diagnostics);

} // namespace ptxrewrite::driver
