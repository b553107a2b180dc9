// Virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap ...): address ranges and physical memory are
// allocated separately and connected by mappings. Memory may be mapped at several addresses.
#pragma once

#include "cuda/context/context.h"

namespace ptxrewrite::cuda {

// Sizes, offsets and addresses must be multiples of it.
inline constexpr uint64_t mapping_granularity = uint64_t(2) << 20;

// The result of cuMemCreate; programs hold its address as a number.
struct PhysicalMemory;

Code reserve_range(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t& address);
Code free_range(uint64_t address, uint64_t bytes);
// Fails if the device has too little memory.
Code create_physical(Context& context, uint64_t bytes, PhysicalMemory*& made);
// The memory stays allocated while it is mapped.
Code release_physical(PhysicalMemory* memory);
bool is_physical(const PhysicalMemory* memory);
Code map_physical(uint64_t address, uint64_t bytes, uint64_t offset, PhysicalMemory* memory);
Code unmap_range(Context& context, uint64_t address, uint64_t bytes);
// Kernels and copies can access mapped memory only after access is granted; `access`: CUmemAccess_flags, 0 revokes it.
Code set_access(Context& context, uint64_t address, uint64_t bytes, int access);
// Do two accessible mappings share memory?
bool is_memory_shared();
// Fails if nothing is mapped there.
Code access_of(uint64_t address, int& access);
// The physical allocation mapped at `address`. Adds a reference, which release_physical drops.
Code retain_physical(uint64_t address, PhysicalMemory*& memory);

} // namespace ptxrewrite::cuda
