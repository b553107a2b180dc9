// The emulated GPU's memory: one range of device addresses, backed by host memory that is reserved, not committed,
// until it is written, with the allocations in it known one by one, so that every access can be checked against them.
//
// Generic addresses: shared, local, constant and kernel-parameter memory each have a window (PTX ISA 5, generic
// addressing); everything else is global. Thread-safe for reads; allocate and release only between launches, but for
// allocate_on_device (malloc of a kernel).
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

// Fixed, so that results never depend on where the host put the memory.
inline constexpr uint64_t global_base = 0x7f40'0000'0000;
inline constexpr uint64_t shared_window = 0x7f00'0000'0000;
inline constexpr uint64_t local_window = 0x7f01'0000'0000;
inline constexpr uint64_t constant_window = 0x7f02'0000'0000;
inline constexpr uint64_t parameter_window = 0x7f03'0000'0000;
inline constexpr uint64_t window_size = 0x0001'0000'0000;

// Do the `bytes` bytes at `address` lie among the `size` bytes at `begin`? Addresses and sizes come from kernels: no
// sum of them is made that could wrap.
constexpr bool contains(uint64_t begin, uint64_t size, uint64_t address, uint64_t bytes) {
  return address - begin <= size && bytes <= size - (address - begin);
}

// A range of device addresses that may be accessed, and where its bytes are.
struct MemoryRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  std::byte* host = nullptr; // null: nothing is allocated
  bool contains(uint64_t address, uint64_t bytes) const {
    return host && emulator::contains(begin, size, address, bytes);
  }
  std::byte* at(uint64_t address) const { return host + (address - begin); }
};

class DeviceMemory {
public:
  // `limit`: of all that launches take, buffers and what is made to run kernels together. Addresses are reserved for
  // more than that, where the process may have them; only touched pages cost memory.
  explicit DeviceMemory(uint64_t limit = default_memory_limit());
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Zeroed memory, aligned to 256 bytes. The name is for messages. Error: capacity.
  Result<uint64_t> allocate(uint64_t bytes, std::string_view name);
  // The same at an address of the caller's choice, so that pointers to it are as they were elsewhere. Before any memory
  // without a chosen address. Error: capacity, or the address belongs to something else.
  Status allocate_at(uint64_t address, uint64_t bytes, std::string_view name);
  // The next variable of that name (allocate_variable) gets this address.
  void place(std::string_view name, uint64_t address);
  // As allocate() or allocate_managed(), for a variable of a module: at the address that place() has named, if any.
  Result<uint64_t> allocate_variable(uint64_t bytes, std::string_view name, bool managed);
  Status release(uint64_t address);
  // Memory of the host that kernels may access at the host's own addresses (pinned, registered, managed). It stays the
  // caller's, and must live until it is detached. Error: it overlaps other allocations, or addresses that mean
  // something else on the device.
  Status attach(std::span<std::byte> bytes, std::string_view name);
  Status detach(const std::byte* begin);
  // Where managed variables come from: pages of their own, at the same address for host and device.
  Result<uint64_t> allocate_managed(uint64_t bytes, std::string_view name);
  // Does `address` lie in memory that was attached, or is managed?
  bool is_host_memory(uint64_t address) const;
  MemoryBudget& budget() { return budget_; }
  // Of malloc. Before the first launch of a kernel that calls it; later it changes nothing.
  void set_heap_bytes(uint64_t bytes) { heap_bytes_ = bytes; }
  // Makes the heap if there is none yet. Error: no memory for it.
  Status prepare_heap();
  // malloc and free of a kernel, from the heap; null (0) when there is none left. Any thread.
  uint64_t allocate_on_device(uint64_t bytes);
  bool release_on_device(uint64_t address);

  Status write(uint64_t address, std::span<const std::byte> bytes);
  Status read(uint64_t address, std::span<std::byte> bytes) const;

  // One allocation, and where its bytes are.
  struct Extent {
    uint64_t address = 0;
    std::span<std::byte> bytes;
    std::string name;
    bool from_device = false; // malloc of a kernel
  };
  // All of them by address, without the kernels' heap itself.
  std::vector<Extent> extents() const;
  // All that is allocated and what is in it; and back to it.
  struct Snapshot;
  Result<std::shared_ptr<const Snapshot>> snapshot();
  void restore(const Snapshot& snapshot);

  // The allocation that holds `address`; an empty range when there is none.
  MemoryRange find(uint64_t address) const;
  // "4 bytes behind the end of 'w' (1024 bytes at 0x...)": what is near an address that belongs to nothing.
  std::string describe(uint64_t address) const;
  uint64_t allocated_bytes() const { return allocated_; }

private:
  struct Allocation {
    uint64_t size = 0;
    std::string name;
    bool from_device = false;
    std::byte* attached = nullptr; // memory of the host, at its own address
    bool owned = false;            // attached, and unmapped with this object
    bool placed = false;           // by allocate_at
  };
  std::byte* bytes_of(uint64_t address, const Allocation& allocation) const {
    return allocation.attached ? allocation.attached : host_ + (address - global_base);
  }
  Status attach_locked(std::span<std::byte> bytes, std::string_view name, bool owned);
  Result<uint64_t> take(uint64_t bytes, std::string_view name);
  Result<uint64_t> take_at(uint64_t address, uint64_t bytes, std::string_view name);
  Result<uint64_t> take_managed(uint64_t bytes, std::string_view name);
  // Where a variable of this name is to be; 0: anywhere.
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
  std::multimap<uint64_t, uint64_t> free_;     // size -> address, of released ranges
  uint64_t next_ = global_base;
  std::map<std::string, uint64_t, std::less<>> places_; // of what is yet to be allocated
  mutable std::mutex mutex_;                            // device allocations happen while kernels run
};

} // namespace ptxrewrite::emulator
