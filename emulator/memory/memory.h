// The emulated GPU's memory: one range of device addresses, backed by host memory that is reserved and only committed
// when it is written, with a table of allocations, so that every access can be checked against them.
//
// Generic addresses: shared, local, constant and kernel-parameter memory each have a window (PTX ISA 5, generic
// addressing); everything else is global. Reads are thread-safe; allocate and release memory only between launches,
// except with allocate_on_device (malloc of a kernel).
#pragma once

#include "emulator/memory/kernel_heap.h"
#include "emulator/memory/memory_budget.h"
#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

// Fixed, so that results do not depend on the host's address layout.
inline constexpr uint64_t global_base = 0x7f40'0000'0000;
inline constexpr uint64_t shared_window = 0x7f00'0000'0000;
inline constexpr uint64_t local_window = 0x7f01'0000'0000;
inline constexpr uint64_t constant_window = 0x7f02'0000'0000;
inline constexpr uint64_t parameter_window = 0x7f03'0000'0000;
inline constexpr uint64_t window_size = 0x0001'0000'0000;

// Whether the `bytes` bytes at `address` are among the `size` bytes at `begin`. Addresses and sizes come from kernels,
// so the comparison uses no sum that could wrap.
constexpr bool contains(uint64_t begin, uint64_t size, uint64_t address, uint64_t bytes) {
  return address - begin <= size && bytes <= size - (address - begin);
}

// An accessible range of device addresses, with the location of its bytes on the host.
struct MemoryRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  std::byte* host = nullptr; // nullptr: nothing is allocated
  bool contains(uint64_t address, uint64_t bytes) const {
    return host && emulator::contains(begin, size, address, bytes);
  }
  std::byte* at(uint64_t address) const { return host + (address - begin); }
};

class DeviceMemory {
public:
  // `limit`: of all memory that launches use, buffers and emulator state together. A larger range of addresses is
  // reserved, if the process may have it; only touched pages cost memory.
  explicit DeviceMemory(uint64_t limit = default_memory_limit());
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Allocates zeroed memory, aligned to 256 bytes. The name is for messages. Returns an error if the limit is exceeded.
  Result<uint64_t> allocate(uint64_t bytes, std::string_view name);
  // Allocates at an address chosen by the caller, so that stored pointers stay valid. Call it before allocations
  // without a chosen address. Returns an error if the limit is exceeded or the address is in use.
  Status allocate_at(uint64_t address, uint64_t bytes, std::string_view name);
  // The next variable of that name (allocate_variable) is placed at this address.
  void place(std::string_view name, uint64_t address);
  // Like allocate() or allocate_managed(), for a variable of a module, at the address from place() if there is one.
  Result<uint64_t> allocate_variable(uint64_t bytes, std::string_view name, bool managed);
  Status release(uint64_t address);
  // Memory of the host that kernels may access at the host's own addresses (pinned, registered, managed). It is owned
  // by the caller and must live until it is detached. Returns an error if it overlaps other allocations, or addresses
  // with another meaning on the device.
  Status attach(std::span<std::byte> bytes, std::string_view name);
  Status detach(const std::byte* begin);
  // Allocates a managed variable: separate pages, at the same address on host and device.
  Result<uint64_t> allocate_managed(uint64_t bytes, std::string_view name);
  // Whether `address` is in attached or managed memory.
  bool is_host_memory(uint64_t address) const;
  MemoryBudget& budget() { return budget_; }
  // Size of the malloc heap. Takes effect before the first launch of a kernel that calls malloc.
  void set_heap_bytes(uint64_t bytes) { heap_bytes_ = bytes; }
  // Creates the heap if there is none yet. Returns an error if there is no memory for it.
  Status prepare_heap();
  // malloc and free of a kernel, in the heap; malloc returns 0 if the heap is full. Thread-safe.
  uint64_t allocate_on_device(uint64_t bytes);
  bool release_on_device(uint64_t address);

  Status write(uint64_t address, std::span<const std::byte> bytes);
  Status read(uint64_t address, std::span<std::byte> bytes) const;

  // An allocation and the location of its bytes.
  struct Extent {
    uint64_t address = 0;
    std::span<std::byte> bytes;
    std::string name;
    bool from_device = false; // malloc of a kernel
  };
  // All allocations by address, except the kernels' heap itself.
  std::vector<Extent> extents() const;
  // Saves and restores all allocations and their contents.
  struct Snapshot;
  Result<std::shared_ptr<const Snapshot>> snapshot();
  void restore(const Snapshot& snapshot);

  // The allocation that contains `address`; an empty range if there is none.
  MemoryRange find(uint64_t address) const;
  // "4 bytes behind the end of 'w' (1024 bytes at 0x...)": describes an address outside of allocations.
  std::string describe(uint64_t address) const;
  uint64_t allocated_bytes() const { return allocated_; }

private:
  struct Allocation {
    uint64_t size = 0;
    std::string name;
    bool from_device = false;
    std::byte* attached = nullptr; // memory of the host, at the host's own address
    bool owned = false;            // attached, and unmapped by the destructor
    bool placed = false;           // by allocate_at
  };
  std::byte* bytes_of(uint64_t address, const Allocation& allocation) const {
    return allocation.attached ? allocation.attached : host_ + (address - global_base);
  }
  Status attach_locked(std::span<std::byte> bytes, std::string_view name, bool owned);
  Result<uint64_t> take(uint64_t bytes, std::string_view name);
  Result<uint64_t> take_at(uint64_t address, uint64_t bytes, std::string_view name);
  Result<uint64_t> take_managed(uint64_t bytes, std::string_view name);
  // The address placed for a variable of this name; 0: none.
  uint64_t take_place(std::string_view name);
  void unmap(uint64_t address, const Allocation& allocation) const;
  Result<uint64_t> take_addresses(uint64_t bytes, std::string_view name);

  MemoryBudget budget_;
  std::byte* host_ = nullptr;
  uint64_t capacity_ = 0; // bytes of addresses
  uint64_t heap_bytes_ = default_heap_bytes;
  bool has_heap_ = false;
  KernelHeap heap_;
  uint64_t allocated_ = 0;
  std::map<uint64_t, Allocation> allocations_; // by address
  std::multimap<uint64_t, uint64_t> free_;     // released ranges: size -> address
  uint64_t next_ = global_base;
  std::map<std::string, uint64_t, std::less<>> places_; // for variables that are not allocated yet
  mutable std::mutex mutex_;                            // kernels allocate while they run
};

} // namespace ptxrewrite::emulator
