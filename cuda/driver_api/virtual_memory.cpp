// Virtual memory management, and allocation in streams.
#include "cuda/context/virtual_memory.h"
#include "cuda/context/memory_pools.h"
#include "cuda/driver_api/entry.h"

namespace ptxrewrite::cuda::driver {

DRIVER_API int cuMemGetAllocationGranularity(size_t* bytes, const PoolProperties* properties, int) {
  return entry("cuMemGetAllocationGranularity", [&](Context&) {
    if (!bytes || !properties) return Code::invalid_value;
    *bytes = mapping_granularity;
    return Code::success;
  });
}

DRIVER_API int cuMemAddressReserve(DevicePointer* address, size_t bytes, size_t alignment, DevicePointer wanted,
                                   unsigned long long) {
  return entry("cuMemAddressReserve", [&](Context&) {
    return address ? reserve_range(bytes, alignment, wanted, *address) : Code::invalid_value;
  });
}

DRIVER_API int cuMemAddressFree(DevicePointer address, size_t bytes) {
  return entry("cuMemAddressFree", [&](Context&) { return free_range(address, bytes); });
}

DRIVER_API int cuMemCreate(PhysicalMemory** memory, size_t bytes, const PoolProperties* properties,
                           unsigned long long) {
  return entry("cuMemCreate", [&](Context& context) {
    if (!memory || !properties) return Code::invalid_value;
    return create_physical(context, bytes, *memory);
  });
}

DRIVER_API int cuMemRelease(PhysicalMemory* memory) {
  return entry("cuMemRelease", [&](Context&) { return release_physical(memory); });
}

DRIVER_API int cuMemMap(DevicePointer address, size_t bytes, size_t offset, PhysicalMemory* memory,
                        unsigned long long) {
  return entry("cuMemMap", [&](Context&) { return map_physical(address, bytes, offset, memory); });
}

DRIVER_API int cuMemUnmap(DevicePointer address, size_t bytes) {
  return entry("cuMemUnmap", [&](Context& context) { return unmap_range(context, address, bytes); });
}

DRIVER_API int cuMemSetAccess(DevicePointer address, size_t bytes, const AccessDescription* given, size_t count) {
  return entry("cuMemSetAccess", [&](Context& context) {
    for (size_t i = 0; given && i < count; ++i)
      if (given[i].location.type == location_device)
        return given[i].location.id == 0 ? set_access(context, address, bytes, given[i].flags) : Code::invalid_device;
    return given && count ? Code::success : Code::invalid_value; // the host has access anyway
  });
}

DRIVER_API int cuMemGetAccess(unsigned long long* flags, const Location* location, DevicePointer address) {
  return entry("cuMemGetAccess", [&](Context&) {
    if (!flags || !location) return Code::invalid_value;
    int access = 0;
    const Code code = access_of(address, access);
    if (code == Code::success) *flags = static_cast<unsigned long long>(access);
    return code;
  });
}

DRIVER_API int cuMemRetainAllocationHandle(PhysicalMemory** memory, void* address) {
  return entry("cuMemRetainAllocationHandle", [&](Context&) {
    return memory ? retain_physical(reinterpret_cast<uint64_t>(address), *memory) : Code::invalid_value;
  });
}

DRIVER_API int cuMemGetAllocationPropertiesFromHandle(PoolProperties* properties, const PhysicalMemory* memory) {
  return entry("cuMemGetAllocationPropertiesFromHandle", [&](Context&) {
    if (!properties || !is_physical(memory)) return Code::invalid_value;
    *properties = {1, 0, {location_device, 0}, nullptr, {}};
    return Code::success;
  });
}

DRIVER_API int cuMemAllocFromPoolAsync(DevicePointer* address, size_t bytes, MemoryPool* pool, void* stream) {
  return entry("cuMemAllocFromPoolAsync", [&](Context& context) {
    return pool && address ? allocate_in_stream(context, stream, pool, bytes, *address) : Code::invalid_value;
  });
}

DRIVER_API int cuMemAllocAsync(DevicePointer* address, size_t bytes, void* stream) {
  return entry("cuMemAllocAsync", [&](Context& context) {
    return address ? allocate_in_stream(context, stream, nullptr, bytes, *address) : Code::invalid_value;
  });
}

DRIVER_ALIAS(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync)
DRIVER_ALIAS(cuMemAllocAsync_ptsz, cuMemAllocAsync)

} // namespace ptxrewrite::cuda::driver
