// What runs kernels: the emulator, or a GPU behind the CUDA driver. One interface, so that every command and every test
// treats both alike.
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
  std::optional<launch::Dim3> cluster = {}; // blocks of a cluster; none: as the kernel says
};

// How kernels name a texture: to sample it, and to load and store by coordinates.
struct TextureHandles {
  uint64_t texture = 0, surface = 0;
};

// How one launch went. A kernel that faults is no error of ours: `failure` says what it did.
struct KernelRun {
  std::optional<emulator::Failure> failure;
  std::vector<emulator::Finding> findings; // of check mode
  std::string printed;
  emulator::Counters counters;    // emulator only
  emulator::MachineData machines; // emulator only: LaunchResult::machines
  double seconds = 0;
};

// Whether the registers of a proposed machine's own suffice for a kernel.
struct RegisterVerdict {
  bool suffice = true;
  std::string text; // the figures
};

// What there is to say about a device beside results.
struct DeviceInfo {
  std::string name;           // "NVIDIA H200"
  std::string bus_id;         // of PCI: "0000:3B:00.0"
  int compute_capability = 0; // 90; 0: emulator
  int driver_version = 0;     // 13000: CUDA 13.0
  int multiprocessors = 0;
  uint64_t l2_bytes = 0;
};

class Device {
public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  // Addresses are the device's own. Memory is zeroed.
  virtual Result<uint64_t> allocate(uint64_t bytes, std::string_view name) = 0;
  // The same at an address of the caller's choice; and for the variable of that name of modules that are loaded later.
  // Before all memory without a chosen address. Error: there is something else, or the device has no such choice.
  virtual Status allocate_at(uint64_t address, uint64_t bytes, std::string_view name);
  virtual Status place_variable(std::string_view name, uint64_t address);
  virtual Status release(uint64_t address) = 0;
  virtual Status write(uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual Status read(uint64_t address, std::span<std::byte> bytes) = 0;
  // The memory itself where the host can reach it, so that big buffers need no second copy; else empty.
  virtual std::span<std::byte> mapped(uint64_t address, uint64_t bytes) {
    (void)address, (void)bytes;
    return {};
  }
  virtual Status fill(uint64_t address, std::byte value, uint64_t bytes) = 0;
  // For malloc of kernels. Before the first launch.
  virtual Status set_heap_bytes(uint64_t bytes) = 0;
  // Takes the place of all modules loaded before. `module` must outlive the device or the next load.
  virtual Status load(const ir::Module& module) = 0;
  // Loads one more; everything below is about the module in use, which the last one loaded is. Returns its number;
  // that of `load` is 0.
  virtual Result<size_t> load_beside(const ir::Module& module) = 0;
  virtual void use_module(size_t number) = 0;
  // Bytes of a .const or .global variable of the loaded module. Errors: no such variable, more bytes than it has.
  virtual Status write_variable(std::string_view name, std::span<const std::byte> bytes) = 0;
  virtual Result<std::vector<std::byte>> read_variable(std::string_view name) = 0;
  // Makes a texture known to the module in use; a reference of the texture's name stands for it, too. `element` is the
  // type of the buffer's elements. Goes when the buffer is released. Errors: texels that cannot be, what a driver says.
  virtual Result<TextureHandles> bind_texture(const launch::Texture& texture, ir::ScalarType element,
                                              uint64_t buffer_address) = 0;
  // The bytes of a tensor map, as the device's copies want them. `map` is legal. Error: the device has none.
  virtual Result<std::array<std::byte, ir::tensor_map_bytes>> encode_tensor_map(const ir::TensorMap& map);
  // Error: no such kernel, wrong sizes, an instruction that the device does not have.
  virtual Result<KernelRun> launch(const KernelLaunch& launch) = 0;
  // Of a kernel in hardware form that stands in for `original` (nullptr: it has none, so that nothing was freed).
  // Nothing where the kernel has no registers of that kind, or the device no such limits.
  virtual std::optional<RegisterVerdict> registers_for(const ir::Function* original, const ir::Function& kernel,
                                                       const KernelLaunch& launch) {
    (void)original, (void)kernel, (void)launch;
    return std::nullopt;
  }
  // Blocks of such a launch that the whole device runs at the same time: what a persistent grid gets.
  virtual Result<uint64_t> resident_blocks(const KernelLaunch& launch) = 0;
};

// What the user lets kernels take: set by the options of a command, and what every emulator of the process starts from.
struct EmulatorLimits {
  uint64_t fuel = emulator::default_fuel; // LaunchRequest::fuel
  uint64_t memory = 0;                    // bytes of the host; 0: emulator::default_memory_limit()
  uint64_t memory_bytes() const { return memory ? memory : emulator::default_memory_limit(); }
};
EmulatorLimits& emulator_limits();

struct EmulatorOptions {
  bool check = false;
  bool count_memory = false;
  bool unordered = false;
  bool late_copies = false;  // asynchronous copies happen when they are waited for
  bool reversed = false;     // blocks start from the last one on
  unsigned host_threads = 0; // 0: all
  uint64_t fuel = emulator_limits().fuel;
  // Of a persistent grid. 0: what `machine` holds; otherwise a number by decision, small so that blocks loop.
  uint64_t resident_blocks = 8;
  // Hardware forms are counted for it, and run only if it has registers for them; nullptr: %nsmid SMs, no limits.
  const ir::Machine* machine = nullptr;
  // Asked before each launch for who looks on at it; may give nullptr.
  std::function<emulator::Observer*(const emulator::LaunchRequest&)> observer;
  // Settings of the papers' machines: LaunchRequest::machines. Where DAC's say no number of resident blocks, it is that
  // of `machine`.
  emulator::MachineData machines = {};
};
std::unique_ptr<Device> make_emulator_device(const EmulatorOptions& options = {});

// The first GPU. `library_path` empty: the one that the environment's PTXREWRITE_LIBCUDA names, else libcuda.so.1.
// Error: there is no GPU here (exit code 77).
Result<std::unique_ptr<Device>> make_cuda_device(const std::string& library_path = {});

} // namespace ptxrewrite::cuda
