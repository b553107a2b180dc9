// CUDA arrays, texture and surface objects.
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#include <map>
#include <set>

namespace ptxrewrite::cuda::runtime {
namespace {

struct TextureRecord {
  abi::ResourceDescription resource{};
  abi::TextureDescription texture{};
};

std::set<const Array*>& arrays() {
  static auto* made = new std::set<const Array*>;
  return *made;
}

std::map<uint64_t, TextureRecord>& objects() {
  static auto* made = new std::map<uint64_t, TextureRecord>;
  return *made;
}

Code check_channels(const ChannelDescription& channels) {
  const int bits = channels.x;
  if (bits != 8 && bits != 16 && bits != 32) return Code::invalid_channel_descriptor;
  for (int other : {channels.y, channels.z, channels.w})
    if (other != 0 && other != bits) return Code::invalid_channel_descriptor;
  return Code::success;
}

Code new_array(Context& context, Array** made, const ChannelDescription* channels, const abi::Extent& extent,
               unsigned flags) {
  if (!made || !channels || extent.width == 0) return Code::invalid_value;
  if (const Code code = check_channels(*channels); code != Code::success) return code;
  auto array = std::make_unique<Array>(Array{*channels, extent.width, extent.height, extent.depth, flags});
  if (const Code code = context.allocate(array->bytes(), array->address); code != Code::success) return code;
  arrays().insert(array.get());
  *made = array.release();
  return Code::success;
}

// Type and number of channels.
void set_texels(const ChannelDescription& channels, emulator::TextureBinding& binding) {
  binding.kind = channels.kind == 2   ? emulator::TexelKind::floating
                 : channels.kind == 0 ? emulator::TexelKind::signed_integer
                                      : emulator::TexelKind::unsigned_integer;
  binding.channel_bits = static_cast<unsigned>(channels.x);
  binding.channels = 1 + (channels.y != 0) + (channels.z != 0) + (channels.w != 0);
}

Code bind_array(const Array* array, emulator::TextureBinding& binding) {
  if (!arrays().contains(array)) return Code::invalid_handle;
  if (array->flags & 4) {
    log_once(LogLevel::warn, "cube maps are not emulated");
    return Code::not_supported;
  }
  set_texels(array->channels, binding);
  binding.address = array->address;
  binding.width = array->width;
  binding.height = array->height;
  binding.depth = array->depth;
  binding.layered = array->flags & 1;
  return Code::success;
}

Code bind_pitched(const abi::ResourceDescription& resource, emulator::TextureBinding& binding) {
  set_texels(resource.pitched.channels, binding);
  binding.address = reinterpret_cast<uint64_t>(resource.pitched.pointer);
  binding.width = resource.pitched.width;
  binding.height = resource.pitched.height;
  if (resource.pitched.pitch == binding.width * binding.texel_bytes()) return Code::success;
  log_once(LogLevel::warn, "textures over pitched memory with gaps between rows are not emulated");
  return Code::not_supported;
}

Code bind_resource(const abi::ResourceDescription& resource, emulator::TextureBinding& binding) {
  switch (resource.type) {
  case 0:
    return bind_array(resource.array.array, binding);
  case 2: {
    if (const Code code = check_channels(resource.linear.channels); code != Code::success) return code;
    set_texels(resource.linear.channels, binding);
    binding.address = reinterpret_cast<uint64_t>(resource.linear.pointer);
    binding.width = resource.linear.bytes / binding.texel_bytes();
    return Code::success;
  }
  case 3:
    if (const Code code = check_channels(resource.pitched.channels); code != Code::success) return code;
    return bind_pitched(resource, binding);
  default:
    log_once(LogLevel::warn, "mipmapped arrays are not emulated");
    return Code::not_supported;
  }
}

Code set_sampling(const abi::TextureDescription& texture, emulator::TextureBinding& binding) {
  constexpr emulator::TextureAddressing modes[] = {
      emulator::TextureAddressing::wrap, emulator::TextureAddressing::clamp, emulator::TextureAddressing::mirror,
      emulator::TextureAddressing::border};
  if (texture.address_mode[0] < 0 || texture.address_mode[0] > 3) return Code::invalid_value;
  binding.addressing = modes[texture.address_mode[0]];
  binding.filter = texture.filter_mode ? emulator::TextureFilter::linear : emulator::TextureFilter::nearest;
  binding.normalised_coordinates = texture.normalised_coordinates != 0;
  binding.normalised_float = texture.read_mode == 1;
  // Wrapping and mirroring need normalised coordinates; others clamp (CUDA programming guide, texture memory).
  if (!binding.normalised_coordinates && (binding.addressing == emulator::TextureAddressing::wrap ||
                                          binding.addressing == emulator::TextureAddressing::mirror))
    binding.addressing = emulator::TextureAddressing::clamp;
  return Code::success;
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
  return entry("cudaFreeArray", [&](Context& context) {
    if (!array) return Code::success;
    if (!arrays().erase(array)) return Code::invalid_value;
    const Code code = context.release(array->address);
    delete array;
    return code;
  });
}

RUNTIME_API int cudaGetChannelDesc(ChannelDescription* channels, const Array* array) {
  return entry("cudaGetChannelDesc", [&](Context&) {
    if (!arrays().contains(array)) return Code::invalid_handle;
    *channels = array->channels;
    return Code::success;
  });
}

RUNTIME_API int cudaArrayGetInfo(ChannelDescription* channels, abi::Extent* extent, unsigned* flags,
                                 const Array* array) {
  return entry("cudaArrayGetInfo", [&](Context&) {
    if (!arrays().contains(array)) return Code::invalid_handle;
    if (channels) *channels = array->channels;
    if (extent) *extent = {array->width, array->height, array->depth};
    if (flags) *flags = array->flags;
    return Code::success;
  });
}

RUNTIME_API int cudaCreateTextureObject(uint64_t* object, const abi::ResourceDescription* resource,
                                        const abi::TextureDescription* texture, const void* view) {
  return entry("cudaCreateTextureObject", [&](Context& context) {
    if (!object || !resource || !texture) return Code::invalid_value;
    if (view) log_once(LogLevel::warn, "resource views of textures are not emulated: the texture is used as it is");
    emulator::TextureBinding binding;
    if (const Code code = bind_resource(*resource, binding); code != Code::success) return code;
    if (const Code code = set_sampling(*texture, binding); code != Code::success) return code;
    *object = context.add_texture(binding);
    objects()[*object] = {*resource, *texture};
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
    if (!object || !resource || resource->type != 0) return Code::invalid_value;
    emulator::TextureBinding binding;
    if (const Code code = bind_array(resource->array.array, binding); code != Code::success) return code;
    *object = context.add_texture(binding);
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

RUNTIME_API int cudaGetSurfaceObjectResourceDesc(abi::ResourceDescription* resource, uint64_t object) {
  return cudaGetTextureObjectResourceDesc(resource, object);
}

} // namespace ptxrewrite::cuda::runtime
