// Virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap ...): addresses and memory asked for apart, and
// brought together page by page. Memory may be mapped at several addresses.
#pragma once

#include "cuda/context/context.h"

namespace ptxrewrite::cuda {

// Sizes, offsets and addresses are multiples of it.
inline constexpr uint64_t mapping_granularity = uint64_t(2) << 20;

// What cuMemCreate makes; programs hold its address as a number.
struct PhysicalMemory;

Code reserve_range(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t& address);
Code free_range(uint64_t address, uint64_t bytes);
// Error: more than the device has.
Code create_physical(Context& context, uint64_t bytes, PhysicalMemory*& made);
// It lives on while it is mapped.
Code release_physical(PhysicalMemory* memory);
bool is_physical(const PhysicalMemory* memory);
Code map_physical(uint64_t address, uint64_t bytes, uint64_t offset, PhysicalMemory* memory);
Code unmap_range(Context& context, uint64_t address, uint64_t bytes);
// Kernels and copies reach mapped memory only once access is given; `access`: of CUmemAccess_flags, 0 takes it back.
Code set_access(Context& context, uint64_t address, uint64_t bytes, int access);
// Do two mappings that kernels reach share memory?
bool is_memory_shared();
// Error: nothing is mapped there.
Code access_of(uint64_t address, int& access);
// The physical allocation mapped at `address`. Adds a reference, which release_physical drops.
Code retain_physical(uint64_t address, PhysicalMemory*& memory);

} // namespace ptxrewrite::cuda
