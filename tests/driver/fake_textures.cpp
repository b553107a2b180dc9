// The texture and surface part of the fake libcuda: arrays are in the emulator's memory, and objects and
// references are bindings of the emulator.
#include "tests/driver/fake_gpu.h"

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::driver;

bool is_known(ArrayFormat format) {
  switch (format) {
  case ArrayFormat::unsigned_8:
  case ArrayFormat::unsigned_16:
  case ArrayFormat::unsigned_32:
  case ArrayFormat::signed_8:
  case ArrayFormat::signed_16:
  case ArrayFormat::signed_32:
  case ArrayFormat::float_16:
  case ArrayFormat::float_32:
    return true;
  }
  return false;
}

// A binding without an address: the type of a format's texels.
emulator::TextureBinding texels_of(ArrayFormat format, unsigned channels) {
  const int number = static_cast<int>(format); // the low bits of integer formats encode 1, 2, 4 bytes
  emulator::TextureBinding binding;
  binding.kind = number >= 0x10  ? emulator::TexelKind::floating
                 : number >= 0x8 ? emulator::TexelKind::signed_integer
                                 : emulator::TexelKind::unsigned_integer;
  binding.channel_bits = number >= 0x10 ? number : number >= 0x8 ? 8u << (number - 0x8) : 8u << (number - 0x1);
  binding.channels = channels;
  return binding;
}

emulator::TextureBinding binding_of(const ArrayTag& array) {
  emulator::TextureBinding binding = texels_of(array.description.format, array.description.channels);
  binding.address = array.address;
  binding.width = array.description.width;
  binding.height = array.description.height;
  binding.depth = array.description.depth;
  binding.layered = array.description.flags & array_layered;
  return binding;
}

emulator::TextureBinding binding_of(ArrayFormat format, unsigned channels, DevicePointer address, size_t bytes) {
  emulator::TextureBinding binding = texels_of(format, channels);
  binding.address = address;
  binding.width = bytes / binding.texel_bytes();
  return binding;
}

void set_addressing(emulator::TextureBinding& binding, AddressMode mode) {
  constexpr emulator::TextureAddressing modes[] = {
      emulator::TextureAddressing::wrap, emulator::TextureAddressing::clamp, emulator::TextureAddressing::mirror,
      emulator::TextureAddressing::border};
  binding.addressing = modes[static_cast<int>(mode)];
}
void set_filter(emulator::TextureBinding& binding, FilterMode filter) {
  binding.filter = filter == FilterMode::linear ? emulator::TextureFilter::linear : emulator::TextureFilter::nearest;
}
void set_flags(emulator::TextureBinding& binding, unsigned flags) {
  binding.normalised_float =
      binding.kind != emulator::TexelKind::floating && binding.channel_bits < 32 && !(flags & texture_read_as_integer);
  binding.normalised_coordinates = flags & texture_normalised_coordinates;
}

// Is there a variable of this opaque type?
bool has_reference(const ModuleTag& module, const char* name, ir::ScalarType type) {
  for (const ir::Variable& variable : module.module->variables)
    if (variable.type == type && module.module->text(variable.name) == name) return true;
  return false;
}

} // namespace

extern "C" {

ResultCode cuArray3DCreate_v2(ArrayHandle* array, const ArrayDescription* description) {
  INJECT(cuArray3DCreate_v2);
  const unsigned channels = description->channels;
  if (description->width == 0 || !is_known(description->format) || (channels != 1 && channels != 2 && channels != 4))
    return invalid_value;
  constexpr size_t longest = 131072; // in one dimension, on recent GPUs
  if (description->height == 0 && description->width > longest) return invalid_value;
  auto made = std::make_unique<ArrayTag>();
  made->description = *description;
  Result<uint64_t> address = gpu().memory.allocate(binding_of(*made).bytes(), "array");
  if (!address) return error_out_of_memory;
  made->address = *address;
  gpu().arrays.insert(made.get());
  *array = made.release();
  return success;
}
ResultCode cuMipmappedArrayCreate(MipmappedArrayHandle* array, const ArrayDescription* description, unsigned levels) {
  INJECT(cuMipmappedArrayCreate);
  ArrayTag whole{*description};
  emulator::TextureBinding binding = binding_of(whole);
  binding.mipmap.count = levels;
  if (levels == 0 || description->width >> (levels - 1) == 0) return invalid_value;
  Result<uint64_t> address = gpu().memory.allocate(binding.bytes_of_levels(), "mipmapped array");
  if (!address) return error_out_of_memory;
  binding.address = *address;
  auto made = std::make_unique<MipmappedArrayTag>();
  for (unsigned number = 0; number < levels; ++number) {
    const emulator::TextureBinding level = binding.level(number);
    auto one = std::make_unique<ArrayTag>(whole);
    one->address = level.address;
    one->description.width = level.width;
    one->description.height = level.height;
    one->description.depth = level.depth;
    gpu().arrays.insert(one.get());
    made->levels.push_back(std::move(one));
  }
  *array = made.release();
  return success;
}
ResultCode cuMipmappedArrayDestroy(MipmappedArrayHandle array) {
  for (const auto& level : array->levels)
    gpu().arrays.erase(level.get());
  const bool released = gpu().memory.release(array->levels.front()->address).ok();
  delete array;
  return released ? success : invalid_value;
}
ResultCode cuMipmappedArrayGetLevel(ArrayHandle* level, MipmappedArrayHandle array, unsigned number) {
  INJECT(cuMipmappedArrayGetLevel);
  if (number >= array->levels.size()) return invalid_value;
  *level = array->levels[number].get();
  return success;
}
ResultCode cuArrayDestroy(ArrayHandle array) {
  if (gpu().arrays.erase(array) == 0) return invalid_handle;
  const bool released = gpu().memory.release(array->address).ok();
  delete array;
  return released ? success : invalid_value;
}
// Supports only whole arrays; from or to device memory.
ResultCode cuMemcpy3D_v2(const ArrayCopy* copy) {
  INJECT(cuMemcpy3D_v2);
  const bool to_array = copy->target_type == MemoryType::array;
  ArrayTag* array = to_array ? copy->target_array : copy->source_array;
  if (!gpu().arrays.contains(array) || (to_array ? copy->source_type : copy->target_type) != MemoryType::device)
    return invalid_value;
  const emulator::TextureBinding binding = binding_of(*array);
  if (copy->width_bytes != binding.width * binding.texel_bytes() || copy->height != binding.rows() ||
      copy->depth != binding.planes())
    return invalid_value;
  const size_t pitch = to_array ? copy->source_pitch : copy->target_pitch;
  const size_t height = to_array ? copy->source_height : copy->target_height;
  if (pitch < copy->width_bytes || height < copy->height) return invalid_value;
  const DevicePointer linear = to_array ? copy->source_device : copy->target_device;
  std::vector<std::byte> row(copy->width_bytes);
  for (size_t plane = 0; plane < copy->depth; ++plane)
    for (size_t y = 0; y < copy->height; ++y) {
      const DevicePointer in_array = array->address + (plane * copy->height + y) * copy->width_bytes;
      const DevicePointer outside = linear + (plane * height + y) * pitch;
      if (!gpu().memory.read(to_array ? outside : in_array, row) ||
          !gpu().memory.write(to_array ? in_array : outside, row))
        return invalid_value;
    }
  return success;
}

ResultCode cuTexObjectCreate(TextureObject* texture, const ResourceDescription* resource,
                             const TextureDescription* description, const void* view) {
  INJECT(cuTexObjectCreate);
  if (view || (resource->type == ResourceType::array && !gpu().arrays.contains(resource->array))) return invalid_value;
  emulator::TextureBinding binding;
  switch (resource->type) {
  case ResourceType::array:
    binding = binding_of(*resource->array);
    break;
  case ResourceType::mipmapped_array:
    binding = binding_of(*resource->mipmapped_array->levels.front());
    binding.mipmap = {static_cast<unsigned>(resource->mipmapped_array->levels.size()),
                      static_cast<emulator::TextureFilter>(description->level_filter), description->level_bias,
                      description->lowest_level, description->highest_level};
    break;
  case ResourceType::linear:
    binding = binding_of(resource->linear.format, resource->linear.channels, resource->linear.address,
                         resource->linear.bytes);
    break;
  }
  set_addressing(binding, description->address_modes[0]);
  set_filter(binding, description->filter);
  set_flags(binding, description->flags);
  *texture = gpu().next_texture++;
  gpu().textures[*texture] = binding;
  return success;
}
ResultCode cuTexObjectDestroy(TextureObject texture) {
  return gpu().textures.erase(texture) ? success : invalid_value;
}
ResultCode cuSurfObjectCreate(SurfaceObject* surface, const ResourceDescription* resource) {
  INJECT(cuSurfObjectCreate);
  if (resource->type != ResourceType::array || !gpu().arrays.contains(resource->array) ||
      !(resource->array->description.flags & array_surface))
    return invalid_value;
  *surface = gpu().next_texture++;
  gpu().textures[*surface] = binding_of(*resource->array);
  return success;
}
ResultCode cuSurfObjectDestroy(SurfaceObject surface) {
  return gpu().textures.erase(surface) ? success : invalid_value;
}

ResultCode cuModuleGetTexRef(TextureReferenceHandle* reference, ModuleHandle module, const char* name) {
  INJECT(cuModuleGetTexRef);
  if (!has_reference(*module, name, ir::ScalarType::texref)) return error_not_found;
  auto& handle = module->texture_references[name];
  if (!handle) handle = std::make_unique<TextureReferenceTag>();
  *reference = handle.get();
  return success;
}
ResultCode cuTexRefSetArray(TextureReferenceHandle reference, ArrayHandle array, unsigned flags) {
  INJECT(cuTexRefSetArray);
  if (flags != reference_takes_array_format || !gpu().arrays.contains(array)) return invalid_value;
  reference->binding = binding_of(*array);
  return success;
}
ResultCode cuTexRefSetAddress_v2(size_t* byte_offset, TextureReferenceHandle reference, DevicePointer address,
                                 size_t bytes) {
  INJECT(cuTexRefSetAddress_v2);
  *byte_offset = 0;
  reference->binding.address = address;
  reference->binding.width = bytes / reference->binding.texel_bytes();
  return success;
}
ResultCode cuTexRefSetFormat(TextureReferenceHandle reference, ArrayFormat format, int channels) {
  INJECT(cuTexRefSetFormat);
  reference->binding = texels_of(format, static_cast<unsigned>(channels));
  return success;
}
ResultCode cuTexRefSetAddressMode(TextureReferenceHandle reference, int dimension, AddressMode mode) {
  INJECT(cuTexRefSetAddressMode);
  if (dimension == 0) set_addressing(reference->binding, mode);
  return success;
}
ResultCode cuTexRefSetFilterMode(TextureReferenceHandle reference, FilterMode filter) {
  INJECT(cuTexRefSetFilterMode);
  set_filter(reference->binding, filter);
  return success;
}
ResultCode cuTexRefSetFlags(TextureReferenceHandle reference, unsigned flags) {
  INJECT(cuTexRefSetFlags);
  set_flags(reference->binding, flags);
  return success;
}
ResultCode cuModuleGetSurfRef(SurfaceReferenceHandle* reference, ModuleHandle module, const char* name) {
  INJECT(cuModuleGetSurfRef);
  if (!has_reference(*module, name, ir::ScalarType::surfref)) return error_not_found;
  auto& handle = module->surface_references[name];
  if (!handle) handle = std::make_unique<SurfaceReferenceTag>();
  *reference = handle.get();
  return success;
}
ResultCode cuSurfRefSetArray(SurfaceReferenceHandle reference, ArrayHandle array, unsigned flags) {
  INJECT(cuSurfRefSetArray);
  if (flags != 0 || !gpu().arrays.contains(array) || !(array->description.flags & array_surface)) return invalid_value;
  reference->binding = binding_of(*array);
  return success;
}
} // extern "C"
