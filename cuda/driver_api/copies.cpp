// Copies and fills: linear, with rows and planes, from and to arrays.
#include "cuda/driver_api/copies.h"
#include "cuda/driver_api/entry.h"

namespace ptxrewrite::cuda::driver {
namespace {

int copy(const char* name, uint64_t to, uint64_t from, size_t bytes, CopyDirection direction, void* handle,
         bool asynchronous) {
  const auto may_be_at_once = [&](Context& context) {
    return asynchronous && context.may_be_queued(to, bytes) && context.may_be_queued(from, bytes);
  };
  return Entry(name).at_once_if(may_be_at_once, [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    if (!asynchronous) context.flush_printed();
    return context.submit(stream, NodeType::copy, [=, &context] { return context.copy(to, from, bytes, direction); });
  });
}

int fill(const char* name, DevicePointer to, uint64_t pitch, uint32_t value, unsigned element, size_t width,
         size_t height, void* handle) {
  const auto may_be_at_once = [&](Context& context) {
    return context.may_be_queued({to, pitch, 0}, width * element, height, 1);
  };
  return Entry(name).at_once_if(may_be_at_once, [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    return context.submit(stream, NodeType::fill, [=, &context] {
      return context.fill_rows({to, pitch, 0}, value, element, width, height, 1);
    });
  });
}

CopySide3D in_3d(const CopySide2D& side) {
  return {side.x_bytes, side.y, 0, 0, side.kind, side.host, side.device, side.array, nullptr, side.pitch, 0};
}

Memcpy3D in_3d(const Memcpy2D& copy) {
  return {in_3d(copy.from), in_3d(copy.to), copy.width_bytes, copy.height, 1};
}

Rows rows_of(const CopySide3D& side, size_t width, size_t height) {
  Rows rows{side.kind == 1 ? address_of(side.host) : side.device, side.pitch ? side.pitch : width, 0};
  rows.plane = rows.pitch * (side.height ? side.height : height);
  if (side.kind == 3 && side.array) {
    rows.address = side.array->address;
    rows.pitch = side.array->row_bytes();
    rows.plane = rows.pitch * side.array->rows();
  }
  rows.address += side.z * rows.plane + side.y * rows.pitch + side.x_bytes;
  return rows;
}

int submit_box(const char* name, const Memcpy3D* copy, void* handle) {
  return entry(name, [&](Context& context) {
    if (!copy) return Code::invalid_value;
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    return context.submit(stream, NodeType::copy, box_copy_action(context, *copy));
  });
}

int submit_box(const char* name, const Memcpy2D* copy, void* handle) {
  const Memcpy3D box = copy ? in_3d(*copy) : Memcpy3D{};
  return submit_box(name, copy ? &box : nullptr, handle);
}

// Copies from and to arrays: bytes from an offset on.
CopySide3D array_side(const Array* array, size_t offset) {
  return {offset, 0, 0, 0, 3, nullptr, 0, array, nullptr, 0, 0};
}

CopySide3D device_side(DevicePointer address) {
  return {0, 0, 0, 0, 2, nullptr, address, nullptr, nullptr, 0, 0};
}

CopySide3D host_side(const void* host) {
  return {0, 0, 0, 0, 1, host, 0, nullptr, nullptr, 0, 0};
}

int submit_linear(const char* name, const CopySide3D& to, const CopySide3D& from, size_t bytes, void* stream) {
  const Memcpy3D copy{from, to, bytes, 1, 1};
  return submit_box(name, &copy, stream);
}

} // namespace

Action box_copy_action(Context& context, const Memcpy3D& copy) {
  const Rows to = rows_of(copy.to, copy.width_bytes, copy.height);
  const Rows from = rows_of(copy.from, copy.width_bytes, copy.height);
  return [=, &context, width = copy.width_bytes, height = copy.height, depth = copy.depth] {
    return context.copy_rows(to, from, width, height, depth, CopyDirection::automatic);
  };
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
  return submit_box("cuMemcpy2D", given, nullptr);
}

DRIVER_API int cuMemcpy2DAsync_v2(const Memcpy2D* given, void* stream) {
  return submit_box("cuMemcpy2DAsync", given, stream);
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

DRIVER_API int cuMemsetD2D16_v2(DevicePointer to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return fill("cuMemsetD2D16", to, pitch, value, 2, width, height, nullptr);
}

DRIVER_API int cuMemsetD2D8Async(DevicePointer to, size_t pitch, unsigned char value, size_t width, size_t height,
                                 void* stream) {
  return fill("cuMemsetD2D8Async", to, pitch, value, 1, width, height, stream);
}

DRIVER_API int cuMemsetD2D16Async(DevicePointer to, size_t pitch, unsigned short value, size_t width, size_t height,
                                  void* stream) {
  return fill("cuMemsetD2D16Async", to, pitch, value, 2, width, height, stream);
}

DRIVER_API int cuMemsetD2D32Async(DevicePointer to, size_t pitch, unsigned value, size_t width, size_t height,
                                  void* stream) {
  return fill("cuMemsetD2D32Async", to, pitch, value, 4, width, height, stream);
}

DRIVER_API int cuMemcpy3D_v2(const Memcpy3D* given) {
  return submit_box("cuMemcpy3D", given, nullptr);
}

DRIVER_API int cuMemcpy3DAsync_v2(const Memcpy3D* given, void* stream) {
  return submit_box("cuMemcpy3DAsync", given, stream);
}

DRIVER_API int cuMemcpyPeer(DevicePointer to, void*, DevicePointer from, void*, size_t bytes) {
  return copy("cuMemcpyPeer", to, from, bytes, CopyDirection::device_to_device, nullptr, false);
}

DRIVER_API int cuMemcpyPeerAsync(DevicePointer to, void*, DevicePointer from, void*, size_t bytes, void* stream) {
  return copy("cuMemcpyPeerAsync", to, from, bytes, CopyDirection::device_to_device, stream, true);
}

DRIVER_API int cuMemcpyDtoA_v2(const Array* to, size_t offset, DevicePointer from, size_t bytes) {
  return submit_linear("cuMemcpyDtoA", array_side(to, offset), device_side(from), bytes, nullptr);
}

DRIVER_API int cuMemcpyAtoD_v2(DevicePointer to, const Array* from, size_t offset, size_t bytes) {
  return submit_linear("cuMemcpyAtoD", device_side(to), array_side(from, offset), bytes, nullptr);
}

DRIVER_API int cuMemcpyHtoAAsync_v2(const Array* to, size_t offset, const void* from, size_t bytes, void* stream) {
  return submit_linear("cuMemcpyHtoA", array_side(to, offset), host_side(from), bytes, stream);
}

DRIVER_API int cuMemcpyHtoA_v2(const Array* to, size_t offset, const void* from, size_t bytes) {
  return cuMemcpyHtoAAsync_v2(to, offset, from, bytes, nullptr);
}

DRIVER_API int cuMemcpyAtoHAsync_v2(void* to, const Array* from, size_t offset, size_t bytes, void* stream) {
  return submit_linear("cuMemcpyAtoH", host_side(to), array_side(from, offset), bytes, stream);
}

DRIVER_API int cuMemcpyAtoH_v2(void* to, const Array* from, size_t offset, size_t bytes) {
  return cuMemcpyAtoHAsync_v2(to, from, offset, bytes, nullptr);
}

DRIVER_API int cuMemcpyAtoA_v2(const Array* to, size_t to_offset, const Array* from, size_t from_offset, size_t bytes) {
  return submit_linear("cuMemcpyAtoA", array_side(to, to_offset), array_side(from, from_offset), bytes, nullptr);
}

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
DRIVER_ALIAS(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync_v2)
DRIVER_ALIAS(cuMemcpy2D_v2_ptds, cuMemcpy2D_v2)
DRIVER_ALIAS(cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DAsync_v2)
DRIVER_ALIAS(cuMemcpy3D_v2_ptds, cuMemcpy3D_v2)
DRIVER_ALIAS(cuMemcpyAtoA_v2_ptds, cuMemcpyAtoA_v2)
DRIVER_ALIAS(cuMemcpyAtoD_v2_ptds, cuMemcpyAtoD_v2)
DRIVER_ALIAS(cuMemcpyAtoHAsync_v2_ptsz, cuMemcpyAtoHAsync_v2)
DRIVER_ALIAS(cuMemcpyAtoH_v2_ptds, cuMemcpyAtoH_v2)
DRIVER_ALIAS(cuMemcpyDtoA_v2_ptds, cuMemcpyDtoA_v2)
DRIVER_ALIAS(cuMemcpyHtoAAsync_v2_ptsz, cuMemcpyHtoAAsync_v2)
DRIVER_ALIAS(cuMemcpyHtoA_v2_ptds, cuMemcpyHtoA_v2)
DRIVER_ALIAS(cuMemcpyPeer_ptds, cuMemcpyPeer)
DRIVER_ALIAS(cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync)
DRIVER_ALIAS(cuMemsetD16_v2_ptds, cuMemsetD16_v2)
DRIVER_ALIAS(cuMemsetD2D16Async_ptsz, cuMemsetD2D16Async)
DRIVER_ALIAS(cuMemsetD2D16_v2_ptds, cuMemsetD2D16_v2)
DRIVER_ALIAS(cuMemsetD2D32Async_ptsz, cuMemsetD2D32Async)
DRIVER_ALIAS(cuMemsetD2D32_v2_ptds, cuMemsetD2D32_v2)
DRIVER_ALIAS(cuMemsetD2D8Async_ptsz, cuMemsetD2D8Async)
DRIVER_ALIAS(cuMemsetD2D8_v2_ptds, cuMemsetD2D8_v2)
DRIVER_ALIAS(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2D_v2)

} // namespace ptxrewrite::cuda::driver
