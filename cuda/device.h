// A device that runs kernels: the emulator, or a GPU through the CUDA driver. Commands and tests use both by the same
// interface.
#pragma once

#include "emulator/core/emulator.h"
#include "ir/core/module.h"
#include "ir/machine/figures/machine.h"
#include "launch/launch_plan.h"
#include "support/result.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::cuda {

struct KernelLaunch {
  std::string kernel;
  launch::Dim3 grid, block;
  uint32_t dynamic_shared = 0;
  bool cooperative = false;
  std::vector<std::byte> parameters;        // the bytes of the kernel's .param space
  std::vector<std::string> surfaces;        // textures (by name) that the kernel may store to
  std::optional<launch::Dim3> cluster = {}; // blocks per cluster; if empty, the kernel's own cluster size
};

// The handles by which kernels access a texture: for sampling, and for loads and stores by coordinates.
struct TextureHandles {
  uint64_t texture = 0, surface = 0;
};

// The result of one launch. A fault of the kernel is not an error: it is reported in `failure`.
struct KernelRun {
  std::optional<emulator::Failure> failure;
  std::vector<emulator::Finding> findings; // in check mode
  std::string printed;
  emulator::Counters counters;    // emulator only
  emulator::MachineData machines; // emulator only: LaunchResult::machines
  double seconds = 0;
};

// Do the registers that a proposed machine adds suffice for a kernel?
struct RegisterVerdict {
  bool suffice = true;
  std::string text; // the figures
};

// Properties of a device for reports.
struct DeviceInfo {
  std::string name;           // "NVIDIA H200"
  std::string bus_id;         // PCI bus ID: "0000:3B:00.0"
  int compute_capability = 0; // 90; 0 for the emulator
  int driver_version = 0;     // 13000: CUDA 13.0
  int multiprocessors = 0;
  uint64_t l2_bytes = 0;
};

class Device {
public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  // Returns the device's own address. The memory is zeroed.
  virtual Result<uint64_t> allocate(uint64_t bytes, std::string_view name) = 0;
  // Allocates at a given address; also used for the variable with this name in modules loaded later. Call it before
  // allocations without an address. Fails if the address is in use, or if the device cannot choose addresses.
  virtual Status allocate_at(uint64_t address, uint64_t bytes, std::string_view name);
  virtual Status place_variable(std::string_view name, uint64_t address);
  virtual Status release(uint64_t address) = 0;
  virtual Status write(uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual Status read(uint64_t address, std::span<std::byte> bytes) = 0;
  // The memory itself if the host can access it, so that large buffers need no second copy; otherwise empty.
  virtual std::span<std::byte> mapped(uint64_t address, uint64_t bytes) {
    (void)address, (void)bytes;
    return {};
  }
  virtual Status fill(uint64_t address, std::byte value, uint64_t bytes) = 0;
  // Heap for malloc in kernels. Call it before the first launch.
  virtual Status set_heap_bytes(uint64_t bytes) = 0;
  // Replaces all modules loaded before. `module` must outlive the device, or stay valid until the next load.
  virtual Status load(const ir::Module& module) = 0;
  // Loads an additional module and returns its number; that of `load` is 0. The functions below apply to the module in
  // use, which is the last one loaded.
  virtual Result<size_t> load_beside(const ir::Module& module) = 0;
  virtual void use_module(size_t number) = 0;
  // Writes bytes of a .const or .global variable of the loaded module. Fails if there is no such variable, or if it is
  // smaller.
  virtual Status write_variable(std::string_view name, std::span<const std::byte> bytes) = 0;
  virtual Result<std::vector<std::byte>> read_variable(std::string_view name) = 0;
  // Makes a texture available to the module in use, also to a texture reference of the same name. `element` is the type
  // of the buffer's elements. Releasing the buffer unbinds it. Fails for unsupported texels, or with the driver's
  // error.
  virtual Result<TextureHandles> bind_texture(const launch::Texture& texture, ir::ScalarType element,
                                              uint64_t buffer_address) = 0;
  // Encodes a tensor map for the device's copies. `map` must be valid. Fails if the device does not support tensor
  // maps.
  virtual Result<std::array<std::byte, ir::tensor_map_bytes>> encode_tensor_map(const ir::TensorMap& map);
  // Fails for an unknown kernel, invalid sizes, or an instruction that the device does not support.
  virtual Result<KernelRun> launch(const KernelLaunch& launch) = 0;
  // For a kernel in hardware form that replaces `original` (nullptr if there is none, so that no registers were freed).
  // Returns nothing if the kernel has no such registers, or the device no such limits.
  virtual std::optional<RegisterVerdict> registers_for(const ir::Function* original, const ir::Function& kernel,
                                                       const KernelLaunch& launch) {
    (void)original, (void)kernel, (void)launch;
    return std::nullopt;
  }
  // Number of blocks of such a launch that the whole device runs at the same time: the size of a persistent grid.
  virtual Result<uint64_t> resident_blocks(const KernelLaunch& launch) = 0;
};

// The user's limits for kernels: set by the options of a command, and the defaults of every emulator of the process.
struct EmulatorLimits {
  uint64_t fuel = emulator::default_fuel; // LaunchRequest::fuel
  uint64_t memory = 0;                    // of host memory, in bytes; 0: emulator::default_memory_limit()
  uint64_t memory_bytes() const { return memory ? memory : emulator::default_memory_limit(); }
};
EmulatorLimits& emulator_limits();

struct EmulatorOptions {
  bool check = false;
  bool count_memory = false;
  bool unordered = false;
  bool late_copies = false; // asynchronous copies are executed when they are waited for
  bool reversed = false;    // blocks start in reverse order
  emulator::ClockUnit clock_unit = emulator::ClockUnit::instructions;
  emulator::MatrixSums matrix_sums = emulator::default_matrix_sums();
  unsigned host_threads = 0; // 0: all
  uint64_t fuel = emulator_limits().fuel;
  // Size of a persistent grid. 0: as many blocks as `machine` holds; the default is small, so that blocks loop.
  uint64_t resident_blocks = 8;
  // Runs hardware forms only if this machine has enough registers for them; nullptr: %nsmid SMs, no limits.
  const ir::Machine* machine = nullptr;
  // Called before each launch for an observer; may return nullptr.
  std::function<emulator::Observer*(const emulator::LaunchRequest&)> observer;
  // Settings of the papers' machines: LaunchRequest::machines. If those of DAC do not set the number of resident
  // blocks, it is taken from `machine`.
  emulator::MachineData machines = {};
};
std::unique_ptr<Device> make_emulator_device(const EmulatorOptions& options = {});

// Opens the first GPU. If `library_path` is empty, uses the environment's PTXREWRITE_LIBCUDA, else libcuda.so.1. Fails
// if there is no GPU (exit code 77).
Result<std::unique_ptr<Device>> make_cuda_device(const std::string& library_path = {});

} // namespace ptxrewrite::cuda
