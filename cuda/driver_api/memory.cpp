// Memory: allocation, copies, fills, and what may be asked of a pointer.
#include "cuda/context/array.h"
#include "cuda/driver_api/entry.h"

#include "support/sizes.h"

#include <cstring>

namespace ptxrewrite::cuda::driver {
namespace {

constexpr uint64_t pitch_granularity = 512;

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

int copy(const char* name, uint64_t to, uint64_t from, size_t bytes, CopyDirection direction, void* handle,
         bool asynchronous) {
  return entry(name, [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    if (!asynchronous) context.flush_printed();
    return context.submit(stream, NodeType::copy, [=, &context] { return context.copy(to, from, bytes, direction); });
  });
}

int fill(const char* name, DevicePointer to, uint64_t pitch, uint32_t value, unsigned element, size_t width,
         size_t height, void* handle) {
  return entry(name, [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    return context.submit(stream, NodeType::fill, [=, &context] {
      return context.fill_rows({to, pitch, 0}, value, element, width, height, 1);
    });
  });
}

// One side of CUDA_MEMCPY2D.
struct CopySide {
  size_t x_bytes, y;
  int kind; // 1 host, 2 device, 3 array, 4 unified
  const void* host;
  DevicePointer device;
  const Array* array;
  size_t pitch;
};

struct Memcpy2D {
  CopySide from, to;
  size_t width_bytes, height;
};

Rows rows_of(const CopySide& side, size_t width) {
  uint64_t begin = side.kind == 1 ? address_of(side.host) : side.device;
  uint64_t pitch = side.pitch ? side.pitch : width;
  if (side.kind == 3 && side.array) begin = side.array->address, pitch = side.array->row_bytes();
  return {begin + side.y * pitch + side.x_bytes, pitch, 0};
}

int copy_2d(const char* name, const Memcpy2D* given, void* handle) {
  return entry(name, [&](Context& context) {
    if (!given) return Code::invalid_value;
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    const Rows to = rows_of(given->to, given->width_bytes), from = rows_of(given->from, given->width_bytes);
    const size_t width = given->width_bytes, height = given->height;
    return context.submit(stream, NodeType::copy, [=, &context] {
      return context.copy_rows(to, from, width, height, 1, CopyDirection::automatic);
    });
  });
}

template <class T> void store(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
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
  case 7:  // number of the buffer
  case 11: // where it begins
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

DRIVER_API int cuMemAllocAsync(DevicePointer* address, size_t bytes, void*) {
  return cuMemAlloc_v2(address, bytes);
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
    const MemoryInfo info = context.info_of(address);
    if (info.begin != address || info.kind == MemoryKind::host) return Code::invalid_value;
    return context.release(address);
  });
}

DRIVER_API int cuMemFreeAsync(DevicePointer address, void*) {
  return cuMemFree_v2(address);
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
  return entry("cuMemHostGetDevicePointer", [&](Context& context) {
    if (context.info_of(address_of(host)).kind == MemoryKind::unknown) return Code::invalid_value;
    *device = address_of(host);
    return Code::success;
  });
}

DRIVER_API int cuMemGetAddressRange_v2(DevicePointer* begin, size_t* bytes, DevicePointer address) {
  return entry("cuMemGetAddressRange", [&](Context& context) {
    const MemoryInfo info = context.info_of(address);
    if (info.kind == MemoryKind::unknown) return Code::not_found;
    if (begin) *begin = info.begin;
    if (bytes) *bytes = info.bytes;
    return Code::success;
  });
}

DRIVER_API int cuPointerGetAttribute(void* data, int attribute, DevicePointer pointer) {
  return entry("cuPointerGetAttribute",
               [&](Context& context) { return pointer_attribute(context, data, attribute, pointer); });
}

DRIVER_API int cuPointerGetAttributes(unsigned count, const int* attributes, void** data, DevicePointer pointer) {
  return entry("cuPointerGetAttributes", [&](Context& context) {
    for (unsigned i = 0; i < count; ++i)
      (void)pointer_attribute(context, data[i], attributes[i], pointer); // what is not known stays as it was
    return Code::success;
  });
}

DRIVER_API int cuMemAdvise(DevicePointer, size_t, int, int) {
  return 0;
}

DRIVER_API int cuMemPrefetchAsync(DevicePointer, size_t, int, void*) {
  return 0;
}

DRIVER_API int cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) {
  return copy("cuMemcpy", to, from, bytes, CopyDirection::automatic, nullptr, false);
}

DRIVER_API int cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, void* stream) {
  return copy("cuMemcpyAsync", to, from, bytes, CopyDirection::automatic, stream, true);
}

DRIVER_API int cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return copy("cuMemcpyHtoD", to, address_of(from), bytes, CopyDirection::host_to_device, nullptr, false);
}

DRIVER_API int cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return copy("cuMemcpyDtoH", address_of(to), from, bytes, CopyDirection::device_to_host, nullptr, false);
}

DRIVER_API int cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, size_t bytes) {
  return copy("cuMemcpyDtoD", to, from, bytes, CopyDirection::device_to_device, nullptr, false);
}

DRIVER_API int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, void* stream) {
  return copy("cuMemcpyHtoDAsync", to, address_of(from), bytes, CopyDirection::host_to_device, stream, true);
}

DRIVER_API int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, void* stream) {
  return copy("cuMemcpyDtoHAsync", address_of(to), from, bytes, CopyDirection::device_to_host, stream, true);
}

DRIVER_API int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, void* stream) {
  return copy("cuMemcpyDtoDAsync", to, from, bytes, CopyDirection::device_to_device, stream, true);
}

DRIVER_API int cuMemcpy2D_v2(const Memcpy2D* given) {
  return copy_2d("cuMemcpy2D", given, nullptr);
}

DRIVER_API int cuMemcpy2DAsync_v2(const Memcpy2D* given, void* stream) {
  return copy_2d("cuMemcpy2DAsync", given, stream);
}

DRIVER_API int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, void* stream) {
  return fill("cuMemsetD8", to, count, value, 1, count, 1, stream);
}

DRIVER_API int cuMemsetD16Async(DevicePointer to, unsigned short value, size_t count, void* stream) {
  return fill("cuMemsetD16", to, 2 * count, value, 2, count, 1, stream);
}

DRIVER_API int cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, void* stream) {
  return fill("cuMemsetD32", to, 4 * count, value, 4, count, 1, stream);
}

DRIVER_API int cuMemsetD8_v2(DevicePointer to, unsigned char value, size_t count) {
  return cuMemsetD8Async(to, value, count, nullptr);
}

DRIVER_API int cuMemsetD16_v2(DevicePointer to, unsigned short value, size_t count) {
  return cuMemsetD16Async(to, value, count, nullptr);
}

DRIVER_API int cuMemsetD32_v2(DevicePointer to, unsigned value, size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}

DRIVER_API int cuMemsetD2D8_v2(DevicePointer to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return fill("cuMemsetD2D8", to, pitch, value, 1, width, height, nullptr);
}

DRIVER_API int cuMemsetD2D32_v2(DevicePointer to, size_t pitch, unsigned value, size_t width, size_t height) {
  return fill("cuMemsetD2D32", to, pitch, value, 4, width, height, nullptr);
}

DRIVER_ALIAS(cuMemAllocAsync_ptsz, cuMemAllocAsync)
DRIVER_ALIAS(cuMemFreeAsync_ptsz, cuMemFreeAsync)
DRIVER_ALIAS(cuMemcpy2DUnaligned_v2, cuMemcpy2D_v2)
DRIVER_ALIAS(cuMemcpy_ptds, cuMemcpy)
DRIVER_ALIAS(cuMemcpyAsync_ptsz, cuMemcpyAsync)
DRIVER_ALIAS(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2)
DRIVER_ALIAS(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2)
DRIVER_ALIAS(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2)
DRIVER_ALIAS(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync_v2)
DRIVER_ALIAS(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync_v2)
DRIVER_ALIAS(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync_v2)
DRIVER_ALIAS(cuMemsetD8Async_ptsz, cuMemsetD8Async)
DRIVER_ALIAS(cuMemsetD16Async_ptsz, cuMemsetD16Async)
DRIVER_ALIAS(cuMemsetD32Async_ptsz, cuMemsetD32Async)
DRIVER_ALIAS(cuMemsetD8_v2_ptds, cuMemsetD8_v2)
DRIVER_ALIAS(cuMemsetD32_v2_ptds, cuMemsetD32_v2)

} // namespace ptxrewrite::cuda::driver
