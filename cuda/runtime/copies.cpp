// Copies and fills: linear, pitched, 3D, to and from symbols.
#include "cuda/runtime/entry.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/types.h"

#include <optional>

namespace ptxrewrite::cuda::runtime {
namespace {

struct BoxCopy {
  Rows to, from;
  uint64_t width = 0, height = 1, depth = 1; // width in bytes
  CopyDirection direction = CopyDirection::automatic;
};

bool may_be_queued(Context& context, const BoxCopy& copy) {
  return context.may_be_queued(copy.to, copy.width, copy.height, copy.depth) &&
         context.may_be_queued(copy.from, copy.width, copy.height, copy.depth);
}

// Synchronous copies wait for all kernels, so the output of these is printed. So do copies of memory that CUDA does not
// know: "the function will return only once the copy has completed" (runtime API, API synchronization behavior).
int submit_copy(const char* name, const BoxCopy& copy, void* handle, bool asynchronous) {
  const auto may_be_at_once = [&](Context& context) { return asynchronous && may_be_queued(context, copy); };
  return Entry(name).at_once_if(may_be_at_once, [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    if (!asynchronous) context.flush_printed();
    return context.submit(stream, NodeType::copy, [&context, copy] {
      return context.copy_rows(copy.to, copy.from, copy.width, copy.height, copy.depth, copy.direction);
    });
  });
}

BoxCopy linear(void* to, const void* from, size_t bytes, int kind) {
  return {{address_of(to), bytes, bytes},  {address_of(from), bytes, bytes}, bytes, 1, 1,
          static_cast<CopyDirection>(kind)};
}

BoxCopy pitched(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int kind) {
  return {{address_of(to), to_pitch, 0},   {address_of(from), from_pitch, 0}, width, height, 1,
          static_cast<CopyDirection>(kind)};
}

int submit_fill(const char* name, const Rows& to, int value, uint64_t width, uint64_t height, uint64_t depth,
                void* handle) {
  const auto may_be_at_once = [&](Context& context) { return context.may_be_queued(to, width, height, depth); };
  return Entry(name).at_once_if(may_be_at_once, [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    return context.submit(stream, NodeType::fill, [=, &context] {
      return context.fill_rows(to, static_cast<uint32_t>(value), 1, width, height, depth);
    });
  });
}

int copy_symbol(const char* name, const void* symbol, const void* other, size_t bytes, size_t offset, int kind,
                void* handle, bool to_symbol) {
  return entry(name, [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    Symbol found;
    if (const Code code = symbol_of(symbol, found); code != Code::success) return code;
    if (!emulator::contains(0, found.bytes.size(), offset, bytes)) return Code::invalid_value;
    const uint64_t inside = address_of(found.bytes.data() + offset);
    const bool other_is_device = kind == static_cast<int>(CopyDirection::device_to_device);
    // The variable's bytes are accessible to the host: only the other side must be looked up.
    const auto direction = other_is_device ? to_symbol ? CopyDirection::device_to_host : CopyDirection::host_to_device
                                           : CopyDirection::automatic;
    context.flush_printed();
    return context.submit(stream, NodeType::copy, [=, &context] {
      return to_symbol ? context.copy(inside, address_of(other), bytes, direction)
                       : context.copy(address_of(other), inside, bytes, direction);
    });
  });
}

// A box in an array, or in pitched memory. Positions are in texels for an array, otherwise in bytes.
Rows rows_of(const Array* array, const abi::Position& at, const abi::PitchedPointer& pitched) {
  if (array)
    return {array->address + (at.z * array->rows() + at.y) * array->row_bytes() + at.x * array->texel_bytes(),
            array->row_bytes(), array->row_bytes() * array->rows()};
  const uint64_t plane = pitched.pitch * pitched.y_size;
  return {address_of(pitched.pointer) + at.z * plane + at.y * pitched.pitch + at.x, pitched.pitch, plane};
}

BoxCopy box_copy(const abi::Memcpy3D& given) {
  const Array* array = given.source_array ? given.source_array : given.target_array;
  return {rows_of(given.target_array, given.target_position, given.target),
          rows_of(given.source_array, given.source_position, given.source),
          given.extent.width * (array ? array->texel_bytes() : 1),
          given.extent.height,
          given.extent.depth,
          static_cast<CopyDirection>(given.kind)};
}

int copy_3d(const char* name, const abi::Memcpy3D* given, void* handle, bool asynchronous) {
  if (!given) return entry(name, [](Context&) { return Code::invalid_value; });
  return submit_copy(name, box_copy(*given), handle, asynchronous);
}

} // namespace

Action box_copy_action(Context& context, const abi::Memcpy3D& given) {
  return [&context, copy = box_copy(given)] {
    return context.copy_rows(copy.to, copy.from, copy.width, copy.height, copy.depth, copy.direction);
  };
}

RUNTIME_API int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return submit_copy("cudaMemcpy", linear(to, from, bytes, kind), nullptr, false);
}

RUNTIME_API int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  return submit_copy("cudaMemcpyAsync", linear(to, from, bytes, kind), stream, true);
}

RUNTIME_API int cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return submit_copy("cudaMemcpyPeer", linear(to, from, bytes, 4), nullptr, false);
}

RUNTIME_API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, void* stream) {
  return submit_copy("cudaMemcpyPeerAsync", linear(to, from, bytes, 4), stream, true);
}

RUNTIME_API int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                             size_t height, int kind) {
  if (width > to_pitch || width > from_pitch)
    return entry("cudaMemcpy2D", [](Context&) { return Code::invalid_pitch; });
  return submit_copy("cudaMemcpy2D", pitched(to, to_pitch, from, from_pitch, width, height, kind), nullptr, false);
}

RUNTIME_API int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                  size_t height, int kind, void* stream) {
  if (width > to_pitch || width > from_pitch)
    return entry("cudaMemcpy2DAsync", [](Context&) { return Code::invalid_pitch; });
  return submit_copy("cudaMemcpy2DAsync", pitched(to, to_pitch, from, from_pitch, width, height, kind), stream, true);
}

RUNTIME_API int cudaMemcpy3D(const abi::Memcpy3D* copy) {
  return copy_3d("cudaMemcpy3D", copy, nullptr, false);
}

RUNTIME_API int cudaMemcpy3DAsync(const abi::Memcpy3D* copy, void* stream) {
  return copy_3d("cudaMemcpy3DAsync", copy, stream, true);
}

RUNTIME_API int cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, int kind) {
  return copy_symbol("cudaMemcpyToSymbol", symbol, from, bytes, offset, kind, nullptr, true);
}

RUNTIME_API int cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, int kind) {
  return copy_symbol("cudaMemcpyFromSymbol", symbol, to, bytes, offset, kind, nullptr, false);
}

RUNTIME_API int cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset, int kind,
                                        void* stream) {
  return copy_symbol("cudaMemcpyToSymbolAsync", symbol, from, bytes, offset, kind, stream, true);
}

RUNTIME_API int cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, int kind,
                                          void* stream) {
  return copy_symbol("cudaMemcpyFromSymbolAsync", symbol, to, bytes, offset, kind, stream, false);
}

RUNTIME_API int cudaMemset(void* to, int value, size_t bytes) {
  return submit_fill("cudaMemset", {address_of(to), bytes, bytes}, value, bytes, 1, 1, nullptr);
}

RUNTIME_API int cudaMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  return submit_fill("cudaMemsetAsync", {address_of(to), bytes, bytes}, value, bytes, 1, 1, stream);
}

RUNTIME_API int cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return submit_fill("cudaMemset2D", {address_of(to), pitch, 0}, value, width, height, 1, nullptr);
}

RUNTIME_API int cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, void* stream) {
  return submit_fill("cudaMemset2DAsync", {address_of(to), pitch, 0}, value, width, height, 1, stream);
}

RUNTIME_API int cudaMemset3DAsync(abi::PitchedPointer to, int value, abi::Extent extent, void* stream) {
  return submit_fill("cudaMemset3D", {address_of(to.pointer), to.pitch, to.pitch * to.y_size}, value, extent.width,
                     extent.height, extent.depth, stream);
}

RUNTIME_API int cudaMemset3D(abi::PitchedPointer to, int value, abi::Extent extent) {
  return cudaMemset3DAsync(to, value, extent, nullptr);
}

RUNTIME_ALIAS(cudaMemcpy_ptds, cudaMemcpy)
RUNTIME_ALIAS(cudaMemcpyAsync_ptsz, cudaMemcpyAsync)
RUNTIME_ALIAS(cudaMemcpy2D_ptds, cudaMemcpy2D)
RUNTIME_ALIAS(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync)
RUNTIME_ALIAS(cudaMemcpy3D_ptds, cudaMemcpy3D)
RUNTIME_ALIAS(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync)
RUNTIME_ALIAS(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol)
RUNTIME_ALIAS(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol)
RUNTIME_ALIAS(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync)
RUNTIME_ALIAS(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync)
RUNTIME_ALIAS(cudaMemset_ptds, cudaMemset)
RUNTIME_ALIAS(cudaMemsetAsync_ptsz, cudaMemsetAsync)
RUNTIME_ALIAS(cudaMemset2D_ptds, cudaMemset2D)
RUNTIME_ALIAS(cudaMemset2DAsync_ptsz, cudaMemset2DAsync)
RUNTIME_ALIAS(cudaMemset3D_ptds, cudaMemset3D)
RUNTIME_ALIAS(cudaMemset3DAsync_ptsz, cudaMemset3DAsync)

} // namespace ptxrewrite::cuda::runtime
