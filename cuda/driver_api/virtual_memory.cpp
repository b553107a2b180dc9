// Virtual memory management and memory pools.
#include "cuda/context/virtual_memory.h"
#include "cuda/driver_api/entry.h"

#include <cstring>

namespace ptxrewrite::cuda::driver {
namespace {

// CUmemLocationType: the values that are distinguished.
constexpr int location_device = 1, location_managed_type = 2;

struct Location {
  int type, id;
};

// CUmemAllocationProp, CUmemPoolProps: the members that follow are only hints.
struct Properties {
  int type, handle_types;
  Location location;
  void* unused;
  unsigned char rest[8];
};

struct AccessDescription {
  Location location;
  int flags;
};

// Attributes of a pool (CUmemPool_attribute): three four-byte switches, then sizes.
constexpr int last_switch = 3, release_threshold = 4, reserved_now = 5, reserved_most = 6, used_now = 7, used_most = 8;

struct Pool {
  Properties properties{1, 0, {location_device, 0}, nullptr, {}};
  std::map<int, uint64_t> settings = {{1, 1}, {2, 1}, {3, 1}, {release_threshold, 0}};
  std::map<uint64_t, uint64_t> allocated; // address -> bytes; some may have been freed
  uint64_t most = 0;
};

Pool& default_pool() {
  static auto* made = new Pool;
  return *made;
}

Pool*& current_pool() {
  static Pool* pool = &default_pool();
  return pool;
}

uint64_t bytes_in(Context& context, Pool& pool) {
  uint64_t bytes = 0;
  std::erase_if(pool.allocated, [&](const auto& allocation) {
    const MemoryInfo info = context.info_of(allocation.first);
    if (info.begin != allocation.first || info.bytes != allocation.second) return true;
    bytes += allocation.second;
    return false;
  });
  pool.most = std::max(pool.most, bytes);
  return bytes;
}

Code allocate_from(Context& context, Pool& pool, size_t bytes, DevicePointer* address) {
  if (!address || bytes == 0) return Code::invalid_value;
  const bool is_managed = pool.properties.type == location_managed_type;
  const bool is_host = pool.properties.location.type > location_device;
  const Code code = is_managed || is_host
                        ? context.allocate_host(bytes, is_managed ? MemoryKind::managed : MemoryKind::host, 0, *address)
                        : context.allocate(bytes, *address);
  if (code == Code::success) {
    pool.allocated[*address] = bytes;
    (void)bytes_in(context, pool);
  }
  return code;
}

int give_pool(const char* name, Pool** pool, Pool* which) {
  return entry(name, [&](Context&) {
    if (!pool) return Code::invalid_value;
    *pool = which;
    return Code::success;
  });
}

Code pool_attribute(Context& context, Pool& pool, int attribute, void* value) {
  if (attribute < 1 || attribute > used_most) return Code::invalid_value;
  uint64_t number = pool.settings[attribute];
  if (attribute == reserved_now || attribute == used_now) number = bytes_in(context, pool);
  if (attribute == reserved_most || attribute == used_most) number = (bytes_in(context, pool), pool.most);
  std::memcpy(value, &number, attribute <= last_switch ? sizeof(int) : sizeof number);
  return Code::success;
}

Code set_pool_attribute(Context& context, Pool& pool, int attribute, const void* value) {
  if (attribute < 1 || attribute > used_most) return Code::invalid_value;
  uint64_t number = 0;
  std::memcpy(&number, value, attribute <= last_switch ? sizeof(int) : sizeof number);
  if (attribute == reserved_most || attribute == used_most)
    pool.most = std::max(number, bytes_in(context, pool)); // writing zero resets the maximum
  else
    pool.settings[attribute] = number;
  return Code::success;
}

} // namespace

DRIVER_API int cuMemGetAllocationGranularity(size_t* bytes, const Properties* properties, int) {
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

DRIVER_API int cuMemCreate(PhysicalMemory** memory, size_t bytes, const Properties* properties, unsigned long long) {
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

DRIVER_API int cuMemGetAllocationPropertiesFromHandle(Properties* properties, const PhysicalMemory* memory) {
  return entry("cuMemGetAllocationPropertiesFromHandle", [&](Context&) {
    if (!properties || !is_physical(memory)) return Code::invalid_value;
    *properties = Pool().properties;
    return Code::success;
  });
}

DRIVER_API int cuDeviceGetDefaultMemPool(Pool** pool, int) {
  return give_pool("cuDeviceGetDefaultMemPool", pool, &default_pool());
}

DRIVER_API int cuDeviceGetMemPool(Pool** pool, int) {
  return give_pool("cuDeviceGetMemPool", pool, current_pool());
}

DRIVER_API int cuDeviceSetMemPool(int, Pool* pool) {
  return entry("cuDeviceSetMemPool", [&](Context&) {
    if (!pool) return Code::invalid_value;
    current_pool() = pool;
    return Code::success;
  });
}

DRIVER_API int cuMemGetDefaultMemPool(Pool** pool, const Location* location, int) {
  return entry("cuMemGetDefaultMemPool", [&](Context&) {
    if (!pool || !location) return Code::invalid_value;
    if (location->type != location_device) return Code::not_supported;
    *pool = &default_pool();
    return Code::success;
  });
}

DRIVER_API int cuMemPoolCreate(Pool** pool, const Properties* properties) {
  return entry("cuMemPoolCreate", [&](Context&) {
    if (!pool || !properties) return Code::invalid_value;
    if (properties->handle_types) return Code::not_supported; // sharing between processes
    *pool = new Pool{.properties = *properties};
    return Code::success;
  });
}

DRIVER_API int cuMemPoolDestroy(Pool* pool) {
  return entry("cuMemPoolDestroy", [&](Context&) {
    if (!pool || pool == &default_pool()) return Code::invalid_value;
    if (current_pool() == pool) current_pool() = &default_pool();
    delete pool; // its allocations stay until they are freed
    return Code::success;
  });
}

DRIVER_API int cuMemPoolGetAttribute(Pool* pool, int attribute, void* value) {
  return entry("cuMemPoolGetAttribute", [&](Context& context) {
    return pool && value ? pool_attribute(context, *pool, attribute, value) : Code::invalid_value;
  });
}

DRIVER_API int cuMemPoolSetAttribute(Pool* pool, int attribute, const void* value) {
  return entry("cuMemPoolSetAttribute", [&](Context& context) {
    return pool && value ? set_pool_attribute(context, *pool, attribute, value) : Code::invalid_value;
  });
}

// Freed memory is returned immediately, so there is nothing to trim.
DRIVER_API int cuMemPoolTrimTo(Pool* pool, size_t) {
  return entry("cuMemPoolTrimTo", [&](Context&) { return pool ? Code::success : Code::invalid_value; });
}

DRIVER_API int cuMemPoolSetAccess(Pool* pool, const AccessDescription* given, size_t count) {
  return entry("cuMemPoolSetAccess", [&](Context&) {
    for (size_t i = 0; given && i < count; ++i)
      if (given[i].location.type == location_device && given[i].location.id != 0) return Code::invalid_device;
    return pool && (given || !count) ? Code::success : Code::invalid_value;
  });
}

DRIVER_API int cuMemPoolGetAccess(int* flags, Pool* pool, const Location* location) {
  return entry("cuMemPoolGetAccess", [&](Context&) {
    if (!flags || !pool || !location) return Code::invalid_value;
    *flags = location->type == location_device && location->id == 0 ? 3 : 0; // read and write
    return Code::success;
  });
}

DRIVER_API int cuMemAllocFromPoolAsync(DevicePointer* address, size_t bytes, Pool* pool, void* stream) {
  return entry("cuMemAllocFromPoolAsync", [&](Context& context) {
    if (!pool) return Code::invalid_value;
    if (const Code code = is_stream_known(context, stream); code != Code::success) return code;
    return allocate_from(context, *pool, bytes, address);
  });
}

DRIVER_API int cuMemAllocAsync(DevicePointer* address, size_t bytes, void* stream) {
  return cuMemAllocFromPoolAsync(address, bytes, current_pool(), stream);
}

DRIVER_ALIAS(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync)
DRIVER_ALIAS(cuMemAllocAsync_ptsz, cuMemAllocAsync)

} // namespace ptxrewrite::cuda::driver
