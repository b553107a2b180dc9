// Memory: allocation of every kind, and attributes of pointers.
#include "cuda/context/memory_pools.h"
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#include "support/sizes.h"

#include <cstring>

namespace ptxrewrite::cuda::runtime {
namespace {

// Pitches are multiples of the row alignment that textures require.
constexpr uint64_t pitch_granularity = 512;

Code allocate(Context& context, void** pointer, uint64_t bytes) {
  if (!pointer) return Code::invalid_value;
  *pointer = nullptr;
  if (bytes == 0) return Code::success;
  uint64_t address = 0;
  const Code code = context.allocate(bytes, address);
  *pointer = reinterpret_cast<void*>(address);
  return code;
}

Code allocate_host(Context& context, void** pointer, uint64_t bytes, MemoryKind kind, unsigned flags) {
  if (!pointer) return Code::invalid_value;
  *pointer = nullptr;
  if (bytes == 0) return kind == MemoryKind::managed ? Code::invalid_value : Code::success;
  uint64_t address = 0;
  const Code code = context.allocate_host(bytes, kind, flags, address);
  *pointer = reinterpret_cast<void*>(address);
  return code;
}

Code release(Context& context, void* pointer, bool host) {
  if (!pointer) return Code::success;
  context.flush_printed(); // freeing waits for all kernels
  if (is_graph_memory(address_of(pointer))) return release_graph_memory(address_of(pointer));
  const MemoryInfo info = context.info_of(address_of(pointer));
  if (info.begin != address_of(pointer) || (info.kind == MemoryKind::host) != host) return Code::invalid_value;
  return context.release(info.begin);
}

} // namespace

RUNTIME_API int cudaMalloc(void** pointer, size_t bytes) {
  return entry("cudaMalloc", [&](Context& context) { return allocate(context, pointer, bytes); });
}

RUNTIME_API int cudaMallocFromPoolAsync(void** pointer, size_t bytes, MemoryPool* pool, void* stream) {
  return entry("cudaMallocFromPoolAsync", [&](Context& context) {
    if (!pointer) return Code::invalid_value;
    *pointer = nullptr;
    if (bytes == 0) return Code::success;
    uint64_t address = 0;
    const Code code = allocate_in_stream(context, stream, pool, bytes, address);
    *pointer = reinterpret_cast<void*>(address);
    return code;
  });
}

RUNTIME_API int cudaMallocAsync(void** pointer, size_t bytes, void* stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, nullptr, stream);
}

RUNTIME_API int cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return entry("cudaMallocManaged",
               [&](Context& context) { return allocate_host(context, pointer, bytes, MemoryKind::managed, flags); });
}

RUNTIME_API int cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return entry("cudaHostAlloc",
               [&](Context& context) { return allocate_host(context, pointer, bytes, MemoryKind::host, flags); });
}

RUNTIME_API int cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

RUNTIME_API int cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return entry("cudaMallocPitch", [&](Context& context) {
    *pitch = align_up(width, pitch_granularity);
    return allocate(context, pointer, saturating_multiply(*pitch, height));
  });
}

RUNTIME_API int cudaMalloc3D(abi::PitchedPointer* pitched, abi::Extent extent) {
  return entry("cudaMalloc3D", [&](Context& context) {
    const uint64_t pitch = align_up(extent.width, pitch_granularity);
    *pitched = {nullptr, pitch, extent.width, extent.height};
    return allocate(context, &pitched->pointer,
                    saturating_multiply(saturating_multiply(pitch, extent.height), extent.depth));
  });
}

RUNTIME_API int cudaFree(void* pointer) {
  return entry("cudaFree", [&](Context& context) { return release(context, pointer, false); });
}

RUNTIME_API int cudaFreeAsync(void* pointer, void* stream) {
  return entry("cudaFreeAsync", [&](Context& context) {
    return pointer ? release_in_stream(context, stream, address_of(pointer)) : Code::success;
  });
}

RUNTIME_API int cudaFreeHost(void* pointer) {
  return entry("cudaFreeHost", [&](Context& context) { return release(context, pointer, true); });
}

RUNTIME_API int cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return entry("cudaHostRegister",
               [&](Context& context) { return context.register_host(static_cast<std::byte*>(pointer), bytes, flags); });
}

RUNTIME_API int cudaHostUnregister(void* pointer) {
  return entry("cudaHostUnregister",
               [&](Context& context) { return context.unregister_host(static_cast<std::byte*>(pointer)); });
}

RUNTIME_API int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return Entry("cudaHostGetDevicePointer").at_once([&](Context& context) {
    if (!device || context.info_of(address_of(host)).kind == MemoryKind::unknown) return Code::invalid_value;
    *device = host;
    return Code::success;
  });
}

RUNTIME_API int cudaHostGetFlags(unsigned* flags, void* host) {
  return Entry("cudaHostGetFlags").at_once([&](Context& context) {
    const MemoryInfo info = context.info_of(address_of(host));
    if (!flags || info.kind != MemoryKind::host) return Code::invalid_value;
    *flags = info.flags;
    return Code::success;
  });
}

RUNTIME_API int cudaMemGetInfo(size_t* free, size_t* total) {
  return entry("cudaMemGetInfo", [&](Context& context) {
    if (free) *free = context.free_bytes();
    if (total) *total = context.total_bytes();
    return Code::success;
  });
}

RUNTIME_API int cudaPointerGetAttributes(abi::PointerAttributes* attributes, const void* pointer) {
  return Entry("cudaPointerGetAttributes").at_once([&](Context& context) {
    if (!attributes) return Code::invalid_value;
    const MemoryInfo info = context.info_of(address_of(pointer));
    auto* plain = const_cast<void*>(pointer);
    attributes->device = 0;
    attributes->device_pointer = attributes->host_pointer = plain;
    attributes->type = 0;
    switch (info.kind) {
    case MemoryKind::unknown:
      attributes->device = -2; // cudaInvalidDeviceId
      attributes->device_pointer = nullptr;
      break;
    case MemoryKind::host:
      attributes->type = 1;
      break;
    case MemoryKind::device:
      attributes->type = 2;
      attributes->host_pointer = nullptr;
      break;
    case MemoryKind::managed:
      attributes->type = 3;
      break;
    }
    return Code::success;
  });
}

RUNTIME_API int cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return entry("cudaGetSymbolAddress", [&](Context& context) {
    Symbol found;
    if (const Code code = symbol_of(symbol, found); code != Code::success) return code;
    context.remember_constant(found);
    *pointer = reinterpret_cast<void*>(found.address);
    return Code::success;
  });
}

RUNTIME_API int cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return entry("cudaGetSymbolSize", [&](Context&) {
    Symbol found;
    const Code code = symbol_of(symbol, found);
    *bytes = found.bytes.size();
    return code;
  });
}

// Pages do not move: advice and prefetching have no visible effect.
RUNTIME_API int cudaMemAdvise(const void*, size_t, int, abi::MemoryLocation) {
  return Entry("cudaMemAdvise").at_once([](Context&) { return Code::success; });
}

RUNTIME_API int cudaMemPrefetchAsync(const void*, size_t, abi::MemoryLocation, unsigned, void*) {
  return Entry("cudaMemPrefetchAsync").at_once([](Context&) { return Code::success; });
}

RUNTIME_ALIAS(cudaMallocAsync_ptsz, cudaMallocAsync)
RUNTIME_ALIAS(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync)
RUNTIME_ALIAS(cudaFreeAsync_ptsz, cudaFreeAsync)
RUNTIME_ALIAS(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync)

} // namespace ptxrewrite::cuda::runtime
