// The emulated device of a process: its memory, modules and streams, and the error that made it unusable. Both CUDA
// libraries share the process's only context.
#pragma once

#include "cuda/context/codes.h"
#include "cuda/context/launch_hook.h"
#include "cuda/context/module.h"
#include "cuda/context/operation_queue.h"
#include "cuda/context/settings.h"
#include "cuda/context/stream.h"
#include "emulator/memory/memory.h"

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ptxrewrite::cuda {

// Buffers of the context are identified by the addresses that the program uses for them.
inline uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

struct LaunchShape {
  emulator::Dimensions grid{}, block{};
  uint64_t dynamic_shared = 0;
  bool cooperative = false;
  std::optional<emulator::Dimensions> cluster{}; // launch attribute; if empty, the kernel's own cluster size
};

// The largest cluster size that every GPU with clusters supports (CUDA programming guide, Thread Block Clusters).
inline constexpr int portable_cluster_size = 8;

enum class MemoryKind : uint8_t { unknown, device, host, managed };

// An allocation of the program.
struct MemoryInfo {
  MemoryKind kind = MemoryKind::unknown;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  unsigned flags = 0; // as the program passed them
};

enum class CopyDirection : int { host_to_host, host_to_device, device_to_host, device_to_device, automatic };

// A region of rows and planes. The pitch is the distance from one row to the next.
struct Rows {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint64_t plane = 0; // bytes from one plane to the next
};

class Context {
public:
  // Created by the first call and never destroyed, because programs call from constructors and destructors.
  static Context& get();

  // Called by cuInit, and by calls of the runtime: the driver API works from then on.
  void initialise() { is_initialised_ = true; }
  bool is_initialised() const { return is_initialised_; }
  // The contexts that the calling thread has pushed (driver API), the current one last; null entries mean no context.
  static std::vector<void*>& current();

  const Settings& settings() const { return settings_; }
  emulator::DeviceMemory& memory() { return memory_; }
  using Lock = std::unique_lock<std::recursive_mutex>;
  // Locks the context beside operations of streams that may be running: they change memory and kernels' statistics,
  // nothing else.
  Lock lock() { return Lock(mutex_); }
  // Locks it when all operations are done, so that none runs while the lock is held.
  Lock lock_idle();
  OperationQueue& operations() { return operations_; }
  // With the context locked: another thread ends the program, and its exit handlers destroy what calls use.
  bool has_ended_for_others() const { return ending_thread_ && *ending_thread_ != std::this_thread::get_id(); }
  // After fork, in the child.
  void replace_mutex() { std::construct_at(&mutex_); }
  // The error that a kernel's fault caused in this context; all later calls fail with it. As on a GPU, where the kernel
  // may not have run yet, the program sees it when it waits for the kernel, or asks whether it is done.
  Code seen_fault() const { return seen_fault_; }
  // Called when operations are known to be done: the fault, or an error that leaves the context usable.
  Code see_errors();
  void reset();

  bool has_hooks() const { return !hooks_.empty(); }
  // Returns the module that hooks substitute for `original`; nullptr if none.
  std::unique_ptr<ir::Module> replacement_of(const ir::Module& original);
  const emulator::TextureTable& textures() const { return textures_; }

  Module& add_module(std::string label, std::span<const std::byte> image);
  Module& add_module(std::string label, std::string ptx);
  void remove_module(Module& module);

  // --- memory
  Code allocate(uint64_t bytes, uint64_t& address);
  // Allocates host or managed memory, which has the same address on both sides.
  Code allocate_host(uint64_t bytes, MemoryKind kind, unsigned flags, uint64_t& address);
  Code release(uint64_t address);
  Code register_host(std::byte* begin, uint64_t bytes, unsigned flags);
  Code unregister_host(std::byte* begin);
  // Adds memory that virtual_memory.h mapped at `begin`; unregister_host removes it.
  Code attach_mapped(std::span<std::byte> bytes);
  // Information on the allocation that contains `address`.
  MemoryInfo info_of(uint64_t address) const;
  uint64_t free_bytes();
  uint64_t total_bytes();
  // Returns the bytes at an address of the device; nullptr if the device has no such memory. `is_known` tells whether
  // `address` belongs to the device at all.
  std::byte* device_bytes(uint64_t address, uint64_t bytes, bool& is_known);
  Code copy(uint64_t to, uint64_t from, uint64_t bytes, CopyDirection direction);
  Code copy_rows(const Rows& to, const Rows& from, uint64_t width, uint64_t height, uint64_t depth,
                 CopyDirection direction);
  // Fills `width` elements of `element` bytes (1, 2, 4) in each row.
  Code fill_rows(const Rows& to, uint32_t value, unsigned element, uint64_t width, uint64_t height, uint64_t depth);
  // The address of a constant is valid once its symbol has been queried.
  void remember_constant(const Symbol& symbol);

  // --- kernels
  // `arguments`: in the layout of the kernel's .param space.
  Code launch(Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> arguments);
  Code check_launch(const Kernel& kernel, const LaunchShape& shape);
  // Sets cudaFuncAttributeMaxDynamicSharedMemorySize.
  Code allow_dynamic_shared(Kernel& kernel, int bytes) const;
  uint32_t resident_blocks(const Kernel& kernel, uint32_t threads, uint64_t dynamic_shared) const;
  // Number of clusters of such a launch that the whole device runs at the same time. Fails for sizes that do not fit.
  Code active_clusters(const Kernel& kernel, const LaunchShape& shape, int* clusters) const;
  // `number` as in cudaLimit and CUlimit: stack, printf buffer, heap ...
  Code set_limit(int number, uint64_t value);
  Code limit(int number, uint64_t& value) const;
  // Whether a copy or a fill of these bytes may be executed later: the program must not free them before, as it might
  // memory of the host that CUDA does not know.
  bool may_be_queued(uint64_t address, uint64_t bytes);
  bool may_be_queued(const Rows& rows, uint64_t width, uint64_t height, uint64_t depth);
  // Prints the output of kernels: called at every synchronisation.
  void flush_printed();

  // Writes the table of `--counters`, the reports of hooks, and the JSON document. `status` is the program's exit
  // status. Ends the process if a hook has failed and the program has not.
  void report(int status);

  // --- streams; nullptr is the default stream
  Stream& add_stream(unsigned flags, int priority);
  Code remove_stream(Stream* stream);
  bool is_stream(const Stream* stream) const;
  // Adds the action to the queue, or as a node to the graph that the stream captures. Copies and the like are executed
  // at once if nothing is before them.
  Code submit(Stream* stream, NodeType type, Action action);
  Code record(Event& event, Stream* stream);
  // Records it as an operation that is running: an event of a graph.
  void record_now(Event& event);
  // A copy of the event's moment; nothing if it was never recorded.
  std::optional<Moment> moment_of(const Event& event);
  // The last operation that waiting for the stream waits for: for the default stream, also those of other streams,
  // except such as were made to run beside it.
  uint64_t last_operation(const Stream* stream) const;
  Code wait(Stream* stream, const Event& event);
  Code end_capture(Stream& stream, std::shared_ptr<Graph>& graph);

  // --- textures and surfaces, which both have handles
  uint64_t add_texture(const emulator::TextureBinding& binding);
  // Binds a .texref or .surfref variable at this address, in place of an earlier binding.
  void bind_reference(uint64_t address, const emulator::TextureBinding& binding) { textures_[address] = binding; }
  Code remove_texture(uint64_t handle);

private:
  Context();
  void reserve_addresses();
  void show_launch_failure(const LaunchCall& call, const emulator::LaunchResult& result);
  void run_hooks_before(LaunchCall& call);
  void run_hooks_after(const LaunchCall& call, const emulator::LaunchResult& result);
  // Of the first hook that models launches.
  std::optional<double> modelled_seconds() const;
  Result<emulator::LaunchResult> carry_out(LaunchCall& call);
  std::byte* copy_bytes(uint64_t address, uint64_t bytes, CopyDirection direction, bool is_target);
  Code grid_workspace(uint64_t& address);

  Settings settings_;
  LaunchHooks hooks_;
  emulator::DeviceMemory memory_;
  std::recursive_mutex mutex_;
  std::optional<std::thread::id> ending_thread_;
  OperationQueue operations_;
  std::atomic<Code> fault_ = Code::success;      // written by the launch
  std::atomic<Code> seen_fault_ = Code::success; // as far as the program knows
  std::list<std::unique_ptr<Module>> modules_;
  std::map<uint64_t, MemoryInfo> allocations_; // by address
  std::map<uint64_t, std::span<std::byte>> constants_;
  emulator::TextureTable textures_;
  uint64_t next_texture_ = 1;
  std::list<std::unique_ptr<Stream>> streams_;
  uint64_t next_stream_ = 13; // smaller numbers are those of default streams
  uint64_t last_of_default_stream_ = 0;
  std::mutex moment_mutex_;
  std::map<int, uint64_t> limits_;
  bool addresses_are_reserved_ = false; // host pointers cannot have device addresses
  std::atomic<bool> is_initialised_ = false;
  uint64_t workspace_ = 0; // of cooperative launches
  uint64_t allocation_number_ = 0;
  uint64_t launches_ = 0;
  std::string kernel_buffer_;               // storage of the last launch, for the next one
  std::vector<std::byte> parameter_buffer_; // likewise
  std::mutex printed_mutex_;
  std::string printed_;
  std::atomic<bool> has_printed_ = false; // printed_ is not empty
};

// CUDA's error code for a fault.
Code code_of(const emulator::Failure& failure);

} // namespace ptxrewrite::cuda
