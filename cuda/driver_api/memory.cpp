// Memory: allocation, and attributes of pointers.
#include "cuda/context/memory_pools.h"
#include "cuda/driver_api/entry.h"

#include "support/sizes.h"

#include <cstring>

namespace ptxrewrite::cuda::driver {
namespace {

constexpr uint64_t pitch_granularity = 512;

template <class T> void store(void* to, T value) {
  std::memcpy(to, static_cast<const void*>(&value), sizeof value);
}

Code pointer_attribute(Context& context, void* data, int attribute, DevicePointer pointer) {
  const MemoryInfo info = context.info_of(pointer);
  if (info.kind == MemoryKind::unknown) return Code::invalid_value;
  switch (attribute) {
  case 1: // context
    store<void*>(data, &context);
    return Code::success;
  case 2: // memory type: host or device
    store<unsigned>(data, info.kind == MemoryKind::host ? 1 : 2);
    return Code::success;
  case 3: // device pointer
    store<DevicePointer>(data, pointer);
    return Code::success;
  case 4: // host pointer
    if (info.kind == MemoryKind::device) return Code::invalid_value;
    store<DevicePointer>(data, pointer);
    return Code::success;
  case 7:  // buffer ID
  case 11: // start address
    store<DevicePointer>(data, info.begin);
    return Code::success;
  case 8: // managed
    store<unsigned>(data, info.kind == MemoryKind::managed);
    return Code::success;
  case 9: // device
    store<int>(data, 0);
    return Code::success;
  case 12: // bytes
    store<size_t>(data, info.bytes);
    return Code::success;
  case 13: // mapped
    store<unsigned>(data, 1);
    return Code::success;
  default:
    return Code::not_supported;
  }
}

} // namespace

DRIVER_API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  return entry("cuMemGetInfo", [&](Context& context) {
    if (free) *free = context.free_bytes();
    if (total) *total = context.total_bytes();
    return Code::success;
  });
}

DRIVER_API int cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  return entry("cuMemAlloc", [&](Context& context) {
    if (!address || bytes == 0) return Code::invalid_value;
    return context.allocate(bytes, *address);
  });
}

DRIVER_API int cuMemAllocPitch_v2(DevicePointer* address, size_t* pitch, size_t width, size_t height, unsigned) {
  *pitch = align_up(width, pitch_granularity);
  return cuMemAlloc_v2(address, saturating_multiply(*pitch, height));
}

DRIVER_API int cuMemAllocManaged(DevicePointer* address, size_t bytes, unsigned flags) {
  return entry("cuMemAllocManaged", [&](Context& context) {
    if (!address || bytes == 0) return Code::invalid_value;
    return context.allocate_host(bytes, MemoryKind::managed, flags, *address);
  });
}

DRIVER_API int cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return entry("cuMemHostAlloc", [&](Context& context) {
    if (!pointer || bytes == 0) return Code::invalid_value;
    uint64_t address = 0;
    const Code code = context.allocate_host(bytes, MemoryKind::host, flags, address);
    *pointer = reinterpret_cast<void*>(address);
    return code;
  });
}

DRIVER_API int cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

DRIVER_API int cuMemFree_v2(DevicePointer address) {
  return entry("cuMemFree", [&](Context& context) {
    if (!address) return Code::success;
    context.flush_printed();
    if (is_graph_memory(address)) return release_graph_memory(address);
    const MemoryInfo info = context.info_of(address);
    if (info.begin != address || info.kind == MemoryKind::host) return Code::invalid_value;
    return context.release(address);
  });
}

DRIVER_API int cuMemFreeAsync(DevicePointer address, void* stream) {
  return entry("cuMemFreeAsync", [&](Context& context) { return release_in_stream(context, stream, address); });
}

DRIVER_API int cuMemFreeHost(void* pointer) {
  return entry("cuMemFreeHost", [&](Context& context) {
    const MemoryInfo info = context.info_of(address_of(pointer));
    if (info.begin != address_of(pointer) || info.kind != MemoryKind::host) return Code::invalid_value;
    return context.release(info.begin);
  });
}

DRIVER_API int cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  return entry("cuMemHostRegister",
               [&](Context& context) { return context.register_host(static_cast<std::byte*>(pointer), bytes, flags); });
}

DRIVER_API int cuMemHostUnregister(void* pointer) {
  return entry("cuMemHostUnregister",
               [&](Context& context) { return context.unregister_host(static_cast<std::byte*>(pointer)); });
}

DRIVER_API int cuMemHostGetDevicePointer_v2(DevicePointer* device, void* host, unsigned) {
  return Entry("cuMemHostGetDevicePointer").at_once([&](Context& context) {
    if (context.info_of(address_of(host)).kind == MemoryKind::unknown) return Code::invalid_value;
    *device = address_of(host);
    return Code::success;
  });
}

DRIVER_API int cuMemGetAddressRange_v2(DevicePointer* begin, size_t* bytes, DevicePointer address) {
  return Entry("cuMemGetAddressRange").at_once([&](Context& context) {
    const MemoryInfo info = context.info_of(address);
    if (info.kind == MemoryKind::unknown) return Code::not_found;
    if (begin) *begin = info.begin;
    if (bytes) *bytes = info.bytes;
    return Code::success;
  });
}

DRIVER_API int cuPointerGetAttribute(void* data, int attribute, DevicePointer pointer) {
  return Entry("cuPointerGetAttribute").at_once([&](Context& context) {
    return pointer_attribute(context, data, attribute, pointer);
  });
}

DRIVER_API int cuPointerGetAttributes(unsigned count, const int* attributes, void** data, DevicePointer pointer) {
  return Entry("cuPointerGetAttributes").at_once([&](Context& context) {
    for (unsigned i = 0; i < count; ++i)
      (void)pointer_attribute(context, data[i], attributes[i], pointer); // an unknown attribute leaves its value
                                                                         // unchanged
    return Code::success;
  });
}

DRIVER_API int cuMemHostGetFlags(unsigned* flags, void* host) {
  return Entry("cuMemHostGetFlags").at_once([&](Context& context) {
    const MemoryInfo info = context.info_of(address_of(host));
    if (!flags || info.kind != MemoryKind::host) return Code::invalid_value;
    *flags = info.flags;
    return Code::success;
  });
}

// Only sets synchronous copies, which all copies are.
DRIVER_API int cuPointerSetAttribute(const void*, int, DevicePointer pointer) {
  return entry("cuPointerSetAttribute", [&](Context& context) {
    return context.info_of(pointer).kind == MemoryKind::unknown ? Code::invalid_value : Code::success;
  });
}

DRIVER_API int cuMemAdvise(DevicePointer, size_t, int, int) {
  return 0;
}

DRIVER_API int cuMemAdvise_v2(DevicePointer, size_t, int, uint64_t) {
  return 0;
}

DRIVER_API int cuMemPrefetchAsync(DevicePointer, size_t, int, void*) {
  return 0;
}

DRIVER_API int cuMemPrefetchAsync_v2(DevicePointer, size_t, uint64_t, unsigned, void*) {
  return 0;
}

DRIVER_ALIAS(cuMemPrefetchAsync_ptsz, cuMemPrefetchAsync)
DRIVER_ALIAS(cuMemPrefetchAsync_v2_ptsz, cuMemPrefetchAsync_v2)
DRIVER_ALIAS(cuMemFreeAsync_ptsz, cuMemFreeAsync)

} // namespace ptxrewrite::cuda::driver
