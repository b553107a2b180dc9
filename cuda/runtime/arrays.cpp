// CUDA arrays, texture and surface objects.
#include "cuda/context/texture_calls.h"
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#include <map>
#include <optional>

namespace ptxrewrite::cuda::runtime {
namespace {

struct TextureRecord {
  abi::ResourceDescription resource{};
  abi::TextureDescription texture{};
  std::optional<ResourceView> view{};
};

std::map<uint64_t, TextureRecord>& objects() {
  static auto* made = new std::map<uint64_t, TextureRecord>;
  return *made;
}

TextureResource resource_of(const abi::ResourceDescription& given) {
  using Kind = TextureResource::Kind;
  switch (given.type) {
  case 0:
    return {.kind = Kind::array, .array = given.array.array};
  case 2: {
    const ChannelDescription& channels = given.linear.channels;
    const unsigned texel = Array{.channels = channels}.texel_bytes();
    return {.kind = Kind::linear,
            .address = address_of(given.linear.pointer),
            .channels = channels,
            .width = texel ? given.linear.bytes / texel : 0};
  }
  case 3:
    return {.kind = Kind::pitched,
            .address = address_of(given.pitched.pointer),
            .channels = given.pitched.channels,
            .width = given.pitched.width,
            .height = given.pitched.height,
            .pitch = given.pitched.pitch};
  default:
    return {.kind = Kind::mipmapped_array, .mipmapped = given.mipmapped.array};
  }
}

Sampling sampling_of(const abi::TextureDescription& given) {
  return {given.address_mode[0], given.filter_mode != 0,   given.normalised_coordinates != 0,
          given.read_mode == 1,  given.mipmap_filter == 1, given.mipmap_bias,
          given.mipmap_least,    given.mipmap_most};
}

Code new_array(Context& context, Array** made, const ChannelDescription* channels, const abi::Extent& extent,
               unsigned flags) {
  if (!channels) return Code::invalid_value;
  return create_array(context, made, *channels, extent.width, extent.height, extent.depth, flags);
}

} // namespace

RUNTIME_API ChannelDescription cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

RUNTIME_API int cudaMallocArray(Array** array, const ChannelDescription* channels, size_t width, size_t height,
                                unsigned flags) {
  return entry("cudaMallocArray", [&](Context& context) {
    return new_array(context, array, channels, {width, height, 0}, flags);
  });
}

RUNTIME_API int cudaMalloc3DArray(Array** array, const ChannelDescription* channels, abi::Extent extent,
                                  unsigned flags) {
  return entry("cudaMalloc3DArray",
               [&](Context& context) { return new_array(context, array, channels, extent, flags); });
}

RUNTIME_API int cudaFreeArray(Array* array) {
  return entry("cudaFreeArray",
               [&](Context& context) { return array ? destroy_array(context, array) : Code::success; });
}

RUNTIME_API int cudaMallocMipmappedArray(MipmappedArray** array, const ChannelDescription* channels, abi::Extent extent,
                                         unsigned levels, unsigned flags) {
  return entry("cudaMallocMipmappedArray", [&](Context& context) {
    if (!channels) return Code::invalid_value;
    return create_mipmapped_array(context, array, *channels, extent.width, extent.height, extent.depth, levels, flags);
  });
}

RUNTIME_API int cudaFreeMipmappedArray(MipmappedArray* array) {
  return entry("cudaFreeMipmappedArray",
               [&](Context& context) { return array ? destroy_mipmapped_array(context, array) : Code::success; });
}

RUNTIME_API int cudaGetMipmappedArrayLevel(Array** level, const MipmappedArray* array, unsigned number) {
  return entry("cudaGetMipmappedArrayLevel", [&](Context&) { return mipmap_level(level, array, number); });
}

RUNTIME_API int cudaGetChannelDesc(ChannelDescription* channels, const Array* array) {
  return entry("cudaGetChannelDesc", [&](Context&) {
    if (!is_array(array)) return Code::invalid_handle;
    *channels = array->channels;
    return Code::success;
  });
}

RUNTIME_API int cudaArrayGetInfo(ChannelDescription* channels, abi::Extent* extent, unsigned* flags,
                                 const Array* array) {
  return entry("cudaArrayGetInfo", [&](Context&) {
    if (!is_array(array)) return Code::invalid_handle;
    if (channels) *channels = array->channels;
    if (extent) *extent = {array->width, array->height, array->depth};
    if (flags) *flags = array->flags;
    return Code::success;
  });
}

RUNTIME_API int cudaCreateTextureObject(uint64_t* object, const abi::ResourceDescription* resource,
                                        const abi::TextureDescription* texture, const ResourceView* view) {
  return entry("cudaCreateTextureObject", [&](Context& context) {
    if (!object || !resource || !texture) return Code::invalid_value;
    const Code code = create_texture(context, object, resource_of(*resource), sampling_of(*texture), view);
    if (code != Code::success) return code;
    objects()[*object] = {*resource, *texture, view ? std::optional(*view) : std::nullopt};
    return Code::success;
  });
}

RUNTIME_API int cudaDestroyTextureObject(uint64_t object) {
  return entry("cudaDestroyTextureObject", [&](Context& context) {
    objects().erase(object);
    return context.remove_texture(object);
  });
}

RUNTIME_API int cudaCreateSurfaceObject(uint64_t* object, const abi::ResourceDescription* resource) {
  return entry("cudaCreateSurfaceObject", [&](Context& context) {
    if (!object || !resource) return Code::invalid_value;
    if (const Code code = create_surface(context, object, resource_of(*resource)); code != Code::success) return code;
    objects()[*object] = {*resource, {}};
    return Code::success;
  });
}

RUNTIME_API int cudaDestroySurfaceObject(uint64_t object) {
  return cudaDestroyTextureObject(object);
}

RUNTIME_API int cudaGetTextureObjectResourceDesc(abi::ResourceDescription* resource, uint64_t object) {
  return entry("cudaGetTextureObjectResourceDesc", [&](Context&) {
    auto found = objects().find(object);
    if (found == objects().end()) return Code::invalid_value;
    *resource = found->second.resource;
    return Code::success;
  });
}

RUNTIME_API int cudaGetTextureObjectTextureDesc(abi::TextureDescription* texture, uint64_t object) {
  return entry("cudaGetTextureObjectTextureDesc", [&](Context&) {
    auto found = objects().find(object);
    if (found == objects().end()) return Code::invalid_value;
    *texture = found->second.texture;
    return Code::success;
  });
}

RUNTIME_API int cudaGetTextureObjectResourceViewDesc(ResourceView* view, uint64_t object) {
  return entry("cudaGetTextureObjectResourceViewDesc", [&](Context&) {
    auto found = objects().find(object);
    if (!view || found == objects().end() || !found->second.view) return Code::invalid_value;
    *view = *found->second.view;
    return Code::success;
  });
}

RUNTIME_API int cudaGetSurfaceObjectResourceDesc(abi::ResourceDescription* resource, uint64_t object) {
  return cudaGetTextureObjectResourceDesc(resource, object);
}

} // namespace ptxrewrite::cuda::runtime
