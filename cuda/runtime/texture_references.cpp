// Texture and surface references, which CUDA has up to version 11: variables of a module, described by variables of the
// host. A description is read when memory is bound to it.
#include "cuda/context/texture_calls.h"
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#include <algorithm>

#if PTXREWRITE_CUDART_MAJOR < 12

namespace ptxrewrite::cuda::runtime {
namespace {

using Kind = TextureResource::Kind;

Sampling sampling_of(const abi::TextureReference& reference) {
  return {reference.address_mode[0],
          reference.filter_mode != 0,
          reference.normalised_coordinates != 0,
          reads_normalised_floats(&reference),
          reference.mipmap_filter != 0,
          reference.mipmap_bias,
          reference.mipmap_least,
          reference.mipmap_most};
}

Code bind(Context& context, const abi::TextureReference* reference, const TextureResource& resource) {
  Symbol variable;
  if (!reference || symbol_of(reference, variable) != Code::success) return Code::invalid_texture;
  return bind_texture_reference(context, variable.address, resource, sampling_of(*reference));
}

// Bytes from `address` to the end of its allocation, at most `bytes`: by default programs pass the largest number.
uint64_t bytes_from(Context& context, uint64_t address, uint64_t bytes) {
  const MemoryInfo info = context.info_of(address);
  return std::min(bytes, info.begin + info.bytes - address);
}

} // namespace

RUNTIME_API int cudaBindTexture(size_t* offset, const abi::TextureReference* reference, const void* pointer,
                                const ChannelDescription* channels, size_t bytes) {
  return entry("cudaBindTexture", [&](Context& context) {
    const uint64_t address = address_of(pointer);
    const unsigned texel = channels ? Array{.channels = *channels}.texel_bytes() : 0;
    if (texel == 0 || context.info_of(address).bytes == 0) return Code::invalid_value;
    if (offset) *offset = 0;
    return bind(context, reference,
                {.kind = Kind::linear,
                 .address = address,
                 .channels = *channels,
                 .width = bytes_from(context, address, bytes) / texel});
  });
}

RUNTIME_API int cudaBindTexture2D(size_t* offset, const abi::TextureReference* reference, const void* pointer,
                                  const ChannelDescription* channels, size_t width, size_t height, size_t pitch) {
  return entry("cudaBindTexture2D", [&](Context& context) {
    if (!channels || !pointer) return Code::invalid_value;
    if (offset) *offset = 0;
    return bind(context, reference,
                {.kind = Kind::pitched,
                 .address = address_of(pointer),
                 .channels = *channels,
                 .width = width,
                 .height = height,
                 .pitch = pitch});
  });
}

RUNTIME_API int cudaBindTextureToArray(const abi::TextureReference* reference, const Array* array,
                                       const ChannelDescription*) {
  return entry("cudaBindTextureToArray",
               [&](Context& context) { return bind(context, reference, {.kind = Kind::array, .array = array}); });
}

RUNTIME_API int cudaBindTextureToMipmappedArray(const abi::TextureReference* reference, const MipmappedArray* array,
                                                const ChannelDescription*) {
  return entry("cudaBindTextureToMipmappedArray", [&](Context& context) {
    return bind(context, reference, {.kind = Kind::mipmapped_array, .mipmapped = array});
  });
}

RUNTIME_API int cudaUnbindTexture(const abi::TextureReference* reference) {
  return entry("cudaUnbindTexture", [&](Context& context) {
    Symbol variable;
    if (symbol_of(reference, variable) != Code::success) return Code::invalid_texture;
    (void)context.remove_texture(variable.address); // nothing may be bound
    return Code::success;
  });
}

RUNTIME_API int cudaGetTextureAlignmentOffset(size_t* offset, const abi::TextureReference* reference) {
  return entry("cudaGetTextureAlignmentOffset", [&](Context&) {
    Symbol variable;
    if (!offset) return Code::invalid_value;
    if (symbol_of(reference, variable) != Code::success) return Code::invalid_texture;
    *offset = 0;
    return Code::success;
  });
}

RUNTIME_API int cudaGetTextureReference(const void** reference, const void* symbol) {
  return entry("cudaGetTextureReference", [&](Context&) {
    Symbol variable;
    if (!reference) return Code::invalid_value;
    if (symbol_of(symbol, variable) != Code::success) return Code::invalid_texture;
    *reference = symbol;
    return Code::success;
  });
}

RUNTIME_API int cudaBindSurfaceToArray(const void* reference, const Array* array, const ChannelDescription*) {
  return entry("cudaBindSurfaceToArray", [&](Context& context) {
    Symbol variable;
    if (symbol_of(reference, variable) != Code::success) return Code::invalid_surface;
    return bind_surface_reference(context, variable.address, {.kind = Kind::array, .array = array});
  });
}

RUNTIME_API int cudaGetSurfaceReference(const void** reference, const void* symbol) {
  return entry("cudaGetSurfaceReference", [&](Context&) {
    Symbol variable;
    if (!reference) return Code::invalid_value;
    if (symbol_of(symbol, variable) != Code::success) return Code::invalid_surface;
    *reference = symbol;
    return Code::success;
  });
}

} // namespace ptxrewrite::cuda::runtime

#endif
