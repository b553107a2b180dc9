// Texture and surface references of modules, deprecated since CUDA 11 but part of cuda.h. Each call that sets a
// property binds the variable anew, so that the next launch reads it.
#include "cuda/context/texture_calls.h"
#include "cuda/driver_api/arrays.h"
#include "cuda/driver_api/entry.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace ptxrewrite::cuda::driver {
namespace {

using Kind = TextureResource::Kind;

constexpr unsigned read_as_integer = 1, normalised_coordinates = 2; // CU_TRSF_...
constexpr unsigned override_format = 1;                             // CU_TRSA_OVERRIDE_FORMAT
constexpr int float_format = 32;                                    // CU_AD_FORMAT_FLOAT

struct Reference {
  uint64_t variable = 0; // of the module; 0 if the program made the reference itself
  bool is_surface = false;
  bool is_bound = false;
  TextureResource resource{};
  uint64_t bytes = 0; // of linear memory
  int format = float_format, format_channels = 1;
  int address_mode[3]{}, filter_mode = 0, mipmap_filter = 0;
  float mipmap_bias = 0, mipmap_least = 0, mipmap_most = 1000; // more than any texture has levels
  unsigned anisotropy = 1, flags = 0;
  float border[4]{};
};

// By variable; those without one under their own address, which no device variable has.
std::map<uint64_t, std::unique_ptr<Reference>>& references() {
  static auto* made = new std::map<uint64_t, std::unique_ptr<Reference>>;
  return *made;
}

std::set<const Reference*>& known_references() {
  static auto* made = new std::set<const Reference*>;
  return *made;
}

Reference* add(uint64_t key, std::unique_ptr<Reference> made) {
  known_references().insert(made.get());
  return (references()[key] = std::move(made)).get();
}

Code find(void* module, const char* name, bool is_surface, Reference** found) {
  if (!module || !name || !found) return Code::invalid_value;
  const Symbol symbol = static_cast<Module*>(module)->find_symbol(name);
  if (!symbol.address) return Code::not_found;
  auto& known = references()[symbol.address];
  if (!known) {
    known = std::make_unique<Reference>();
    known->variable = symbol.address;
    known->is_surface = is_surface;
    known_references().insert(known.get());
  }
  *found = known.get();
  return known->is_surface == is_surface ? Code::success : Code::not_found;
}

Code bind(Context& context, Reference& reference) {
  if (!reference.variable || !reference.is_bound) return Code::success;
  if (reference.is_surface) return bind_surface_reference(context, reference.variable, reference.resource);
  TextureResource& resource = reference.resource;
  if (resource.kind == Kind::linear || resource.kind == Kind::pitched)
    resource.channels = channels_of(reference.format, static_cast<unsigned>(reference.format_channels));
  if (resource.kind == Kind::linear) {
    const unsigned texel = Array{.channels = resource.channels}.texel_bytes();
    resource.width = texel ? reference.bytes / texel : 0;
  }
  return bind_texture_reference(context, reference.variable, resource,
                                {.address_mode = reference.address_mode[0],
                                 .linear_filter = reference.filter_mode != 0,
                                 .normalised_coordinates = (reference.flags & normalised_coordinates) != 0,
                                 .normalised_float = (reference.flags & read_as_integer) == 0,
                                 .linear_levels = reference.mipmap_filter != 0,
                                 .level_bias = reference.mipmap_bias,
                                 .least_level = reference.mipmap_least,
                                 .most_level = reference.mipmap_most});
}

template <class Change> int set(const char* name, Reference* reference, Change&& change) {
  return entry(name, [&](Context& context) {
    if (!known_references().contains(reference)) return Code::invalid_handle;
    const Reference before = *reference;
    Code code = change(context, *reference);
    if (code == Code::success) code = bind(context, *reference);
    if (code != Code::success) *reference = before;
    return code;
  });
}

template <class Read> int get(const char* name, const Reference* reference, bool has_target, Read&& read) {
  return entry(name, [&](Context&) {
    if (!known_references().contains(reference)) return Code::invalid_handle;
    if (!has_target) return Code::invalid_value;
    return read(*reference);
  });
}

template <class T> int get(const char* name, const Reference* reference, T* out, T Reference::*part) {
  return get(name, reference, out != nullptr, [&](const Reference& found) {
    *out = found.*part;
    return Code::success;
  });
}

// From `address` to the end of its allocation, at most `bytes`.
Code bind_memory(Context& context, Reference& reference, uint64_t address, uint64_t bytes, TextureResource resource) {
  const MemoryInfo info = context.info_of(address);
  if (info.bytes == 0) return Code::invalid_value;
  reference.bytes = std::min(bytes, info.begin + info.bytes - address);
  reference.resource = resource;
  reference.resource.address = address;
  reference.is_bound = true;
  return Code::success;
}

Code bind_resource(Reference& reference, const TextureResource& resource, unsigned flags, unsigned wanted) {
  if (flags != wanted) return Code::invalid_value;
  reference.resource = resource;
  reference.is_bound = true;
  return Code::success;
}

} // namespace

DRIVER_API int cuModuleGetTexRef(Reference** reference, void* module, const char* name) {
  return entry("cuModuleGetTexRef", [&](Context&) { return find(module, name, false, reference); });
}

DRIVER_API int cuModuleGetSurfRef(Reference** reference, void* module, const char* name) {
  return entry("cuModuleGetSurfRef", [&](Context&) { return find(module, name, true, reference); });
}

DRIVER_API int cuTexRefCreate(Reference** reference) {
  return entry("cuTexRefCreate", [&](Context&) {
    if (!reference) return Code::invalid_value;
    auto made = std::make_unique<Reference>();
    *reference = add(address_of(made.get()), std::move(made));
    return Code::success;
  });
}

DRIVER_API int cuTexRefDestroy(Reference* reference) {
  return entry("cuTexRefDestroy", [&](Context&) {
    if (!known_references().contains(reference) || reference->variable) return Code::invalid_handle;
    known_references().erase(reference);
    references().erase(address_of(reference));
    return Code::success;
  });
}

// The kernel's code names its textures itself.
DRIVER_API int cuParamSetTexRef(Kernel* kernel, int unit, Reference* reference) {
  return get("cuParamSetTexRef", reference, kernel != nullptr,
             [&](const Reference&) { return unit == -1 ? Code::success : Code::invalid_value; });
}

DRIVER_API int cuTexRefSetArray(Reference* reference, const Array* array, unsigned flags) {
  return set("cuTexRefSetArray", reference, [&](Context&, Reference& changed) {
    if (!is_array(array)) return Code::invalid_handle;
    return bind_resource(changed, {.kind = Kind::array, .array = array}, flags, override_format);
  });
}

DRIVER_API int cuTexRefSetMipmappedArray(Reference* reference, const MipmappedArray* array, unsigned flags) {
  return set("cuTexRefSetMipmappedArray", reference, [&](Context&, Reference& changed) {
    return bind_resource(changed, {.kind = Kind::mipmapped_array, .mipmapped = array}, flags, override_format);
  });
}

DRIVER_API int cuTexRefSetAddress_v2(size_t* offset, Reference* reference, DevicePointer address, size_t bytes) {
  return set("cuTexRefSetAddress", reference, [&](Context& context, Reference& changed) {
    const Code code = bind_memory(context, changed, address, bytes, {.kind = Kind::linear});
    if (code == Code::success && offset) *offset = 0;
    return code;
  });
}

DRIVER_API int cuTexRefSetAddress2D_v2(Reference* reference, const ArrayDescription2D* given, DevicePointer address,
                                       size_t pitch) {
  return set("cuTexRefSetAddress2D", reference, [&](Context& context, Reference& changed) {
    if (!given) return Code::invalid_value;
    changed.format = given->format;
    changed.format_channels = static_cast<int>(given->channels);
    return bind_memory(context, changed, address, given->height * pitch,
                       {.kind = Kind::pitched, .width = given->width, .height = given->height, .pitch = pitch});
  });
}

DRIVER_ALIAS(cuTexRefSetAddress2D_v3, cuTexRefSetAddress2D_v2)

DRIVER_API int cuTexRefSetFormat(Reference* reference, int format, int channels) {
  return set("cuTexRefSetFormat", reference, [&](Context&, Reference& changed) {
    if (channels < 1 || channels_of(format, static_cast<unsigned>(channels)).x == 0) return Code::invalid_value;
    changed.format = format, changed.format_channels = channels;
    return Code::success;
  });
}

DRIVER_API int cuTexRefSetAddressMode(Reference* reference, int dimension, int mode) {
  return set("cuTexRefSetAddressMode", reference, [&](Context&, Reference& changed) {
    if (dimension < 0 || dimension > 2 || mode < 0 || mode > 3) return Code::invalid_value;
    changed.address_mode[dimension] = mode;
    return Code::success;
  });
}

DRIVER_API int cuTexRefSetFilterMode(Reference* reference, int mode) {
  return set("cuTexRefSetFilterMode", reference, [&](Context&, Reference& changed) {
    if (mode < 0 || mode > 1) return Code::invalid_value;
    changed.filter_mode = mode;
    return Code::success;
  });
}

DRIVER_API int cuTexRefSetMipmapFilterMode(Reference* reference, int mode) {
  return set("cuTexRefSetMipmapFilterMode", reference, [&](Context&, Reference& changed) {
    if (mode < 0 || mode > 1) return Code::invalid_value;
    changed.mipmap_filter = mode;
    return Code::success;
  });
}

DRIVER_API int cuTexRefSetMipmapLevelBias(Reference* reference, float bias) {
  return set("cuTexRefSetMipmapLevelBias", reference, [&](Context&, Reference& changed) {
    changed.mipmap_bias = bias;
    return Code::success;
  });
}

DRIVER_API int cuTexRefSetMipmapLevelClamp(Reference* reference, float least, float most) {
  return set("cuTexRefSetMipmapLevelClamp", reference, [&](Context&, Reference& changed) {
    changed.mipmap_least = least, changed.mipmap_most = most;
    return Code::success;
  });
}

DRIVER_API int cuTexRefSetMaxAnisotropy(Reference* reference, unsigned most) {
  return set("cuTexRefSetMaxAnisotropy", reference, [&](Context&, Reference& changed) {
    changed.anisotropy = most; // textures are sampled without
    return Code::success;
  });
}

DRIVER_API int cuTexRefSetBorderColor(Reference* reference, const float* colour) {
  return set("cuTexRefSetBorderColor", reference, [&](Context&, Reference& changed) {
    if (!colour) return Code::invalid_value;
    for (float channel : {colour[0], colour[1], colour[2], colour[3]})
      if (channel != 0) log_once(LogLevel::warn, "border colours of textures are not emulated: they are zeros");
    std::copy_n(colour, 4, changed.border);
    return Code::success;
  });
}

DRIVER_API int cuTexRefSetFlags(Reference* reference, unsigned flags) {
  return set("cuTexRefSetFlags", reference, [&](Context&, Reference& changed) {
    changed.flags = flags;
    return Code::success;
  });
}

DRIVER_API int cuTexRefGetAddress_v2(DevicePointer* address, const Reference* reference) {
  return get("cuTexRefGetAddress", reference, address != nullptr, [&](const Reference& found) {
    const bool is_memory = found.resource.kind == Kind::linear || found.resource.kind == Kind::pitched;
    if (!found.is_bound || !is_memory) return Code::invalid_value;
    *address = found.resource.address;
    return Code::success;
  });
}

DRIVER_API int cuTexRefGetArray(const Array** array, const Reference* reference) {
  return get("cuTexRefGetArray", reference, array != nullptr, [&](const Reference& found) {
    if (!found.is_bound || found.resource.kind != Kind::array) return Code::invalid_value;
    *array = found.resource.array;
    return Code::success;
  });
}

DRIVER_API int cuTexRefGetMipmappedArray(const MipmappedArray** array, const Reference* reference) {
  return get("cuTexRefGetMipmappedArray", reference, array != nullptr, [&](const Reference& found) {
    if (!found.is_bound || found.resource.kind != Kind::mipmapped_array) return Code::invalid_value;
    *array = found.resource.mipmapped;
    return Code::success;
  });
}

DRIVER_API int cuTexRefGetAddressMode(int* mode, const Reference* reference, int dimension) {
  return get("cuTexRefGetAddressMode", reference, mode && dimension >= 0 && dimension < 3, [&](const Reference& found) {
    *mode = found.address_mode[dimension];
    return Code::success;
  });
}

DRIVER_API int cuTexRefGetFilterMode(int* mode, const Reference* reference) {
  return get("cuTexRefGetFilterMode", reference, mode, &Reference::filter_mode);
}

DRIVER_API int cuTexRefGetFormat(int* format, int* channels, const Reference* reference) {
  return get("cuTexRefGetFormat", reference, format && channels, [&](const Reference& found) {
    *format = found.format, *channels = found.format_channels;
    return Code::success;
  });
}

DRIVER_API int cuTexRefGetMipmapFilterMode(int* mode, const Reference* reference) {
  return get("cuTexRefGetMipmapFilterMode", reference, mode, &Reference::mipmap_filter);
}

DRIVER_API int cuTexRefGetMipmapLevelBias(float* bias, const Reference* reference) {
  return get("cuTexRefGetMipmapLevelBias", reference, bias, &Reference::mipmap_bias);
}

DRIVER_API int cuTexRefGetMipmapLevelClamp(float* least, float* most, const Reference* reference) {
  return get("cuTexRefGetMipmapLevelClamp", reference, least && most, [&](const Reference& found) {
    *least = found.mipmap_least, *most = found.mipmap_most;
    return Code::success;
  });
}

DRIVER_API int cuTexRefGetMaxAnisotropy(unsigned* most, const Reference* reference) {
  return get("cuTexRefGetMaxAnisotropy", reference, most, &Reference::anisotropy);
}

DRIVER_API int cuTexRefGetBorderColor(float* colour, const Reference* reference) {
  return get("cuTexRefGetBorderColor", reference, colour != nullptr, [&](const Reference& found) {
    std::copy_n(found.border, 4, colour);
    return Code::success;
  });
}

DRIVER_API int cuTexRefGetFlags(unsigned* flags, const Reference* reference) {
  return get("cuTexRefGetFlags", reference, flags, &Reference::flags);
}

DRIVER_API int cuSurfRefSetArray(Reference* reference, const Array* array, unsigned flags) {
  return set("cuSurfRefSetArray", reference, [&](Context&, Reference& changed) {
    if (!is_array(array)) return Code::invalid_handle;
    return bind_resource(changed, {.kind = Kind::array, .array = array}, flags, 0);
  });
}

DRIVER_API int cuSurfRefGetArray(const Array** array, const Reference* reference) {
  return cuTexRefGetArray(array, reference);
}

} // namespace ptxrewrite::cuda::driver
