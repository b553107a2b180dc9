// CUDA arrays, texture and surface objects.
#include "cuda/driver_api/arrays.h"

#include "cuda/context/texture_calls.h"
#include "cuda/driver_api/entry.h"

#include <map>
#include <optional>

namespace ptxrewrite::cuda::driver {
namespace {

// CUDA_ARRAY3D_DESCRIPTOR; the 2D descriptor has neither depth nor flags.
struct ArrayDescription {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

struct ResourceDescription {
  int type; // 0 array, 1 mipmapped array, 2 linear, 3 pitched
  union {
    Array* array;
    MipmappedArray* mipmapped;
    struct {
      uint64_t address;
      int format;
      unsigned channels;
      size_t width, height, pitch; // for linear memory, `width` is the number of bytes
    } memory;
    int reserved[32];
  };
  unsigned flags;
};

struct TextureDescription {
  int address_mode[3];
  int filter_mode;
  unsigned flags; // 1: read integers unconverted, 2: normalised coordinates
  unsigned anisotropy;
  int mipmap_filter;
  float mipmap_bias, mipmap_least, mipmap_most;
  float border[4];
  int reserved[12];
};

struct Object {
  ResourceDescription resource{};
  TextureDescription texture{};
  std::optional<ResourceView> view{};
};

std::map<uint64_t, Object>& objects() {
  static auto* made = new std::map<uint64_t, Object>;
  return *made;
}

// A CUarray_format with the width of one channel in bits and its kind as ChannelDescription encodes it.
struct Format {
  int number, bits, kind;
};
constexpr Format formats[] = {{1, 8, 1},  {2, 16, 1},  {3, 32, 1},  {8, 8, 0},
                              {9, 16, 0}, {10, 32, 0}, {16, 16, 2}, {32, 32, 2}};

ArrayDescription description_of(const Array& array) {
  const ChannelDescription& given = array.channels;
  ArrayDescription out{array.width, array.height, array.depth, 0, 1u + (given.y != 0) + 2u * (given.w != 0),
                       array.flags};
  for (const Format& known : formats)
    if (known.bits == given.x && known.kind == given.kind) out.format = known.number;
  return out;
}

TextureResource resource_of(const ResourceDescription& given) {
  using Kind = TextureResource::Kind;
  if (given.type == 0) return {.kind = Kind::array, .array = given.array};
  if (given.type != 2 && given.type != 3) return {.kind = Kind::mipmapped_array, .mipmapped = given.mipmapped};
  const auto& memory = given.memory;
  TextureResource resource{.kind = given.type == 2 ? Kind::linear : Kind::pitched,
                           .address = memory.address,
                           .channels = channels_of(memory.format, memory.channels),
                           .width = memory.width};
  const unsigned texel = Array{.channels = resource.channels}.texel_bytes();
  if (given.type == 2)
    resource.width = texel ? memory.width / texel : 0;
  else
    resource.height = memory.height, resource.pitch = memory.pitch;
  return resource;
}

Sampling sampling_of(const TextureDescription& given) {
  return {given.address_mode[0],    given.filter_mode != 0, (given.flags & 2) != 0, (given.flags & 1) == 0,
          given.mipmap_filter != 0, given.mipmap_bias,      given.mipmap_least,     given.mipmap_most};
}

int make_array(const char* name, Array** array, const ArrayDescription* given) {
  return entry(name, [&](Context& context) {
    if (!given) return Code::invalid_value;
    return create_array(context, array, channels_of(given->format, given->channels), given->width, given->height,
                        given->depth, given->flags);
  });
}

int destroy_object(const char* name, uint64_t object) {
  return entry(name, [&](Context& context) {
    objects().erase(object);
    return context.remove_texture(object);
  });
}

template <class T> int describe(const char* name, T* out, uint64_t object, T Object::*part) {
  return entry(name, [&](Context&) {
    auto found = objects().find(object);
    if (!out || found == objects().end()) return Code::invalid_value;
    *out = found->second.*part;
    return Code::success;
  });
}

} // namespace

ChannelDescription channels_of(int format, unsigned channels) {
  for (const Format& known : formats)
    if (known.number == format && (channels == 1 || channels == 2 || channels == 4))
      return {known.bits, channels > 1 ? known.bits : 0, channels > 2 ? known.bits : 0, channels > 2 ? known.bits : 0,
              known.kind};
  return {};
}

DRIVER_API int cuArray3DCreate_v2(Array** array, const ArrayDescription* given) {
  return make_array("cuArray3DCreate", array, given);
}

DRIVER_API int cuArrayCreate_v2(Array** array, const ArrayDescription2D* given) {
  const ArrayDescription full =
      given ? ArrayDescription{given->width, given->height, 0, given->format, given->channels, 0} : ArrayDescription{};
  return make_array("cuArrayCreate", array, given ? &full : nullptr);
}

DRIVER_API int cuArrayDestroy(Array* array) {
  return entry("cuArrayDestroy", [&](Context& context) {
    const Code code = destroy_array(context, array);
    return code == Code::invalid_value ? Code::invalid_handle : code;
  });
}

DRIVER_API int cuMipmappedArrayCreate(MipmappedArray** array, const ArrayDescription* given, unsigned levels) {
  return entry("cuMipmappedArrayCreate", [&](Context& context) {
    if (!given) return Code::invalid_value;
    return create_mipmapped_array(context, array, channels_of(given->format, given->channels), given->width,
                                  given->height, given->depth, levels, given->flags);
  });
}

DRIVER_API int cuMipmappedArrayDestroy(MipmappedArray* array) {
  return entry("cuMipmappedArrayDestroy", [&](Context& context) { return destroy_mipmapped_array(context, array); });
}

DRIVER_API int cuMipmappedArrayGetLevel(Array** level, const MipmappedArray* array, unsigned number) {
  return entry("cuMipmappedArrayGetLevel", [&](Context&) { return mipmap_level(level, array, number); });
}

DRIVER_API int cuArray3DGetDescriptor_v2(ArrayDescription* out, const Array* array) {
  return entry("cuArray3DGetDescriptor", [&](Context&) {
    if (!is_array(array)) return Code::invalid_handle;
    if (!out) return Code::invalid_value;
    *out = description_of(*array);
    return Code::success;
  });
}

DRIVER_API int cuArrayGetDescriptor_v2(ArrayDescription2D* out, const Array* array) {
  ArrayDescription full{};
  const int code = cuArray3DGetDescriptor_v2(out ? &full : nullptr, array);
  if (code == 0) *out = {full.width, full.height, full.format, full.channels};
  return code;
}

DRIVER_API int cuTexObjectCreate(uint64_t* object, const ResourceDescription* resource,
                                 const TextureDescription* texture, const ResourceView* view) {
  return entry("cuTexObjectCreate", [&](Context& context) {
    if (!object || !resource || !texture) return Code::invalid_value;
    const Code code = create_texture(context, object, resource_of(*resource), sampling_of(*texture), view);
    if (code == Code::success) objects()[*object] = {*resource, *texture, view ? std::optional(*view) : std::nullopt};
    return code;
  });
}

DRIVER_API int cuTexObjectDestroy(uint64_t object) {
  return destroy_object("cuTexObjectDestroy", object);
}

DRIVER_API int cuTexObjectGetResourceDesc(ResourceDescription* out, uint64_t object) {
  return describe("cuTexObjectGetResourceDesc", out, object, &Object::resource);
}

DRIVER_API int cuTexObjectGetTextureDesc(TextureDescription* out, uint64_t object) {
  return describe("cuTexObjectGetTextureDesc", out, object, &Object::texture);
}

DRIVER_API int cuTexObjectGetResourceViewDesc(ResourceView* out, uint64_t object) {
  std::optional<ResourceView> view;
  const int code = describe("cuTexObjectGetResourceViewDesc", out ? &view : nullptr, object, &Object::view);
  if (code == 0) *out = view.value_or(ResourceView{}); // zeros: no view was given
  return code;
}

DRIVER_API int cuSurfObjectCreate(uint64_t* object, const ResourceDescription* resource) {
  return entry("cuSurfObjectCreate", [&](Context& context) {
    if (!object || !resource) return Code::invalid_value;
    const Code code = create_surface(context, object, resource_of(*resource));
    if (code == Code::success) objects()[*object] = {*resource, {}};
    return code;
  });
}

DRIVER_API int cuSurfObjectDestroy(uint64_t object) {
  return destroy_object("cuSurfObjectDestroy", object);
}

DRIVER_API int cuSurfObjectGetResourceDesc(ResourceDescription* out, uint64_t object) {
  return describe("cuSurfObjectGetResourceDesc", out, object, &Object::resource);
}

} // namespace ptxrewrite::cuda::driver
