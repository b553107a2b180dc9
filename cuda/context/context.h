// The emulated device of a process: its memory, modules, streams, and the error that ended it. Both CUDA libraries work
// on the one context that there is.
#pragma once

#include "cuda/context/codes.h"
#include "cuda/context/launch_hook.h"
#include "cuda/context/module.h"
#include "cuda/context/settings.h"
#include "cuda/context/stream.h"
#include "emulator/memory/memory.h"

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

// Buffers of the context are named by the addresses that programs use for them.
inline uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

struct LaunchShape {
  emulator::Dimensions grid{}, block{};
  uint64_t dynamic_shared = 0;
  bool cooperative = false;
  std::optional<emulator::Dimensions> cluster{}; // launch attribute; none: as the kernel says
};

// Blocks of a cluster that any GPU with clusters runs (CUDA programming guide, Thread Block Clusters).
inline constexpr int portable_cluster_size = 8;

enum class MemoryKind : uint8_t { unknown, device, host, managed };

// An allocation of the program.
struct MemoryInfo {
  MemoryKind kind = MemoryKind::unknown;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  unsigned flags = 0; // as the program gave them
};

enum class CopyDirection : int { host_to_host, host_to_device, device_to_host, device_to_device, automatic };

// Bytes in rows and planes. A pitch counts from one row to the next.
struct Rows {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint64_t plane = 0; // bytes from one plane to the next
};

class Context {
public:
  // Made at the first call, whoever calls, and never unmade: programs call from constructors and destructors.
  static Context& get();

  // cuInit, or a call of the runtime: the driver API works from then on.
  void initialise() { is_initialised_ = true; }
  bool is_initialised() const { return is_initialised_; }
  // The contexts that the calling thread has pushed (driver API), the current one last; null ones are none.
  static std::vector<void*>& current();

  const Settings& settings() const { return settings_; }
  emulator::DeviceMemory& memory() { return memory_; }
  std::recursive_mutex& mutex() { return mutex_; }
  // What a kernel's fault has made of this context; every call fails with it from then on.
  Code fault() const { return fault_; }
  void reset();

  // What hooks put in the place of a module; null: nothing.
  std::unique_ptr<ir::Module> replacement_of(const ir::Module& original);
  const emulator::TextureTable& textures() const { return textures_; }

  Module& add_module(std::string label, std::span<const std::byte> image);
  Module& add_module(std::string label, std::string ptx);
  void remove_module(Module& module);

  // --- memory
  Code allocate(uint64_t bytes, uint64_t& address);
  // Host memory and managed memory: one address for both sides.
  Code allocate_host(uint64_t bytes, MemoryKind kind, unsigned flags, uint64_t& address);
  Code release(uint64_t address);
  Code register_host(std::byte* begin, uint64_t bytes, unsigned flags);
  Code unregister_host(std::byte* begin);
  // Memory that virtual_memory.h has mapped at `begin`; back with unregister_host.
  Code attach_mapped(std::span<std::byte> bytes);
  // Of the allocation around `address`.
  MemoryInfo info_of(uint64_t address) const;
  uint64_t free_bytes();
  uint64_t total_bytes();
  // The bytes themselves; null where the device has no such memory, `is_known` then says whether `address` is the
  // device's at all.
  std::byte* device_bytes(uint64_t address, uint64_t bytes, bool& is_known);
  Code copy(uint64_t to, uint64_t from, uint64_t bytes, CopyDirection direction);
  Code copy_rows(const Rows& to, const Rows& from, uint64_t width, uint64_t height, uint64_t depth,
                 CopyDirection direction);
  // `width` elements of `element` bytes (1, 2, 4) in each row.
  Code fill_rows(const Rows& to, uint32_t value, unsigned element, uint64_t width, uint64_t height, uint64_t depth);
  // A constant's address means something once its symbol has been asked for.
  void remember_constant(const Symbol& symbol);

  // --- kernels
  // `arguments`: as the kernel's .param space lies.
  Code launch(Kernel& kernel, const LaunchShape& shape, std::vector<std::byte> arguments);
  Code check_launch(const Kernel& kernel, const LaunchShape& shape);
  // cudaFuncAttributeMaxDynamicSharedMemorySize.
  Code allow_dynamic_shared(Kernel& kernel, int bytes) const;
  uint32_t resident_blocks(const Kernel& kernel, uint32_t threads, uint64_t dynamic_shared) const;
  // Clusters of such a launch that the whole device runs at the same time. Error: sizes that do not fit.
  Code active_clusters(const Kernel& kernel, const LaunchShape& shape, int* clusters) const;
  // As cudaLimit and CUlimit count: stack, printf buffer, heap ...
  Code set_limit(int number, uint64_t value);
  Code limit(int number, uint64_t& value) const;
  // Shows what kernels have printed: at every synchronisation.
  void flush_printed();

  // The table of `--counters`, those of hooks, and the JSON document. `status` is what the program ends with; the
  // process ends here where a hook has failed and the program has not.
  void report(int status);

  // --- streams; null is the default one
  Stream& add_stream(unsigned flags, int priority);
  Code remove_stream(Stream* stream);
  bool is_stream(const Stream* stream) const;
  // Runs the action, or makes it a node of the graph that the stream captures.
  Code submit(Stream* stream, NodeType type, Action action);
  Code record(Event& event, Stream* stream);
  Code wait(Stream* stream, const Event& event);
  Code end_capture(Stream& stream, std::shared_ptr<Graph>& graph);

  // --- textures and surfaces; a handle stands for either
  uint64_t add_texture(const emulator::TextureBinding& binding);
  Code remove_texture(uint64_t handle);

private:
  Context();
  void reserve_addresses();
  void show_launch_failure(const Kernel& kernel, const emulator::LaunchResult& result);
  void run_hooks_before(LaunchCall& call);
  void run_hooks_after(const LaunchCall& call, const emulator::LaunchResult& result);
  Result<emulator::LaunchResult> carry_out(LaunchCall& call);
  std::byte* copy_bytes(uint64_t address, uint64_t bytes, CopyDirection direction, bool is_target);
  Code grid_workspace(uint64_t& address);

  Settings settings_;
  LaunchHooks hooks_;
  emulator::DeviceMemory memory_;
  std::recursive_mutex mutex_;
  Code fault_ = Code::success;
  std::list<std::unique_ptr<Module>> modules_;
  std::map<uint64_t, MemoryInfo> allocations_; // of the program, by address
  std::map<uint64_t, std::span<std::byte>> constants_;
  emulator::TextureTable textures_;
  uint64_t next_texture_ = 1;
  std::list<std::unique_ptr<Stream>> streams_;
  uint64_t next_stream_ = 13; // smaller ones are those of default streams
  std::map<int, uint64_t> limits_;
  bool addresses_are_reserved_ = false; // no pointer of the host looks like one of the device
  std::atomic<bool> is_initialised_ = false;
  uint64_t workspace_ = 0; // of cooperative launches
  uint64_t allocation_number_ = 0;
  uint64_t launches_ = 0;
  std::string printed_;
};

// Of a fault as CUDA calls it.
Code code_of(const emulator::Failure& failure);

} // namespace ptxrewrite::cuda
