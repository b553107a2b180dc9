#include "cuda/driver/texture.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite::driver {
namespace {

std::optional<ArrayFormat> format_of(ir::ScalarType element) {
  const unsigned bits = ir::bit_width(element);
  if (ir::is_float(element)) {
    if (element == ir::ScalarType::f16) return ArrayFormat::float_16;
    if (element == ir::ScalarType::f32) return ArrayFormat::float_32;
    return std::nullopt;
  }
  const bool is_signed = ir::is_signed(element);
  if (bits == 8) return is_signed ? ArrayFormat::signed_8 : ArrayFormat::unsigned_8;
  if (bits == 16) return is_signed ? ArrayFormat::signed_16 : ArrayFormat::unsigned_16;
  if (bits == 32) return is_signed ? ArrayFormat::signed_32 : ArrayFormat::unsigned_32;
  return std::nullopt;
}

AddressMode mode_of(launch::AddressMode mode) {
  switch (mode) {
  case launch::AddressMode::wrap:
    return AddressMode::wrap;
  case launch::AddressMode::mirror:
    return AddressMode::mirror;
  case launch::AddressMode::border:
    return AddressMode::border;
  case launch::AddressMode::clamp:
    break;
  }
  return AddressMode::clamp;
}

FilterMode filter_of(launch::FilterMode filter) {
  return filter == launch::FilterMode::linear ? FilterMode::linear : FilterMode::nearest;
}

} // namespace

Result<std::unique_ptr<GpuTexture>> GpuTexture::make(Gpu& gpu, const launch::Texture& texture, ir::ScalarType element,
                                                     DevicePointer buffer, TexelStore store) {
  if (Status status = gpu.driver().check_textures(); !status) return Error{status.error().message, texture.range};
  const std::optional<ArrayFormat> format = format_of(element);
  if (!format)
    return Error{"texture '" + texture.name + "': texels cannot be " + std::string(ir::spelling(element)),
                 texture.range};
  std::unique_ptr<GpuTexture> made(new GpuTexture(gpu, texture, buffer));
  made->format_ = *format;
  made->element_bytes_ = ir::byte_width(element);
  made->is_integer_ = !ir::is_float(element);
  Status status;
  if (store != TexelStore::buffer) status = made->create_array(store == TexelStore::surface_array);
  if (status) status = made->create_objects(store == TexelStore::surface_array);
  if (!status) return Error{"texture '" + texture.name + "': " + status.error().message, texture.range};
  return made;
}

GpuTexture::~GpuTexture() {
  if (texture_) gpu_.driver().destroy_texture(texture_);
  if (surface_) gpu_.driver().destroy_surface(surface_);
  if (mipmapped_)
    gpu_.driver().destroy_mipmapped_array(mipmapped_);
  else if (!arrays_.empty())
    gpu_.driver().destroy_array(arrays_.front());
}

Status GpuTexture::create_array(bool stores) {
  const ArrayDescription description{
      plan_.width, plan_.height,   plan_.depth,
      format_,     plan_.channels, (plan_.layered ? array_layered : 0) | (stores ? array_surface : 0)};
  if (plan_.levels.count > 1) return create_levels(description);
  ArrayHandle array = nullptr;
  const Status status = gpu_.check("cuArray3DCreate", gpu_.driver().create_array(&array, &description));
  if (status) arrays_.push_back(array);
  return status;
}

Status GpuTexture::create_levels(const ArrayDescription& description) {
  Status status = gpu_.check("cuMipmappedArrayCreate",
                             gpu_.driver().create_mipmapped_array(&mipmapped_, &description, plan_.levels.count));
  for (unsigned number = 0; status && number < plan_.levels.count; ++number) {
    ArrayHandle level = nullptr;
    status = gpu_.check("cuMipmappedArrayGetLevel", gpu_.driver().level_of_array(&level, mipmapped_, number));
    if (status) arrays_.push_back(level);
  }
  return status;
}

unsigned GpuTexture::flags() const {
  return (is_integer_ && !plan_.normalised_float ? texture_read_as_integer : 0) |
         (plan_.normalised_coordinates ? texture_normalised_coordinates : 0);
}

Status GpuTexture::create_objects(bool stores) {
  ResourceDescription resource{};
  if (mipmapped_) {
    resource.type = ResourceType::mipmapped_array;
    resource.mipmapped_array = mipmapped_;
  } else if (!arrays_.empty()) {
    resource.type = ResourceType::array;
    resource.array = arrays_.front();
  } else {
    resource.type = ResourceType::linear;
    resource.linear = {buffer_, format_, plan_.channels, row_bytes()};
  }
  TextureDescription description{};
  std::ranges::fill(description.address_modes, mode_of(plan_.address));
  description.filter = filter_of(plan_.filter);
  description.flags = flags();
  description.level_filter = filter_of(plan_.levels.filter);
  description.level_bias = plan_.levels.bias;
  description.lowest_level = plan_.levels.least;
  description.highest_level = plan_.levels.most;
  if (Status status =
          gpu_.check("cuTexObjectCreate", gpu_.driver().create_texture(&texture_, &resource, &description, nullptr));
      !status || !stores)
    return status;
  resource.type = ResourceType::array; // instructions store to level 0 alone
  resource.array = arrays_.front();
  return gpu_.check("cuSurfObjectCreate", gpu_.driver().create_surface(&surface_, &resource));
}

Status GpuTexture::bind_reference(const GpuModule& module, std::string_view name) {
  if (mipmapped_) return Error{"a reference shows no levels of detail on a GPU", {}};
  const Library& driver = gpu_.driver();
  TextureReferenceHandle reference = nullptr;
  Status status =
      gpu_.check("cuModuleGetTexRef", driver.texture_reference(&reference, module.handle(), std::string(name).c_str()));
  if (status && !arrays_.empty())
    status = gpu_.check("cuTexRefSetArray",
                        driver.reference_array(reference, arrays_.front(), reference_takes_array_format));
  if (status && arrays_.empty()) {
    status =
        gpu_.check("cuTexRefSetFormat", driver.reference_format(reference, format_, static_cast<int>(plan_.channels)));
    size_t offset = 0;
    if (status)
      status = gpu_.check("cuTexRefSetAddress", driver.reference_address(&offset, reference, buffer_, row_bytes()));
  }
  for (int dimension = 0; dimension < 3 && status; ++dimension)
    status = gpu_.check("cuTexRefSetAddressMode",
                        driver.reference_address_mode(reference, dimension, mode_of(plan_.address)));
  if (status) status = gpu_.check("cuTexRefSetFilterMode", driver.reference_filter(reference, filter_of(plan_.filter)));
  if (status) status = gpu_.check("cuTexRefSetFlags", driver.reference_flags(reference, flags()));
  return status;
}

Status GpuTexture::bind_surface_reference(const GpuModule& module, std::string_view name) {
  SurfaceReferenceHandle reference = nullptr;
  if (Status status = gpu_.check("cuModuleGetSurfRef", gpu_.driver().surface_reference(&reference, module.handle(),
                                                                                       std::string(name).c_str()));
      !status)
    return status;
  return gpu_.check("cuSurfRefSetArray", gpu_.driver().surface_array(reference, arrays_.front(), 0));
}

Status GpuTexture::take_from_buffer() {
  return copy(true);
}
Status GpuTexture::give_to_buffer() {
  return copy(false);
}

// Copies all rows, planes and layers of all levels, which follow each other in the buffer.
Status GpuTexture::copy(bool to_array) {
  const size_t texel_bytes = plan_.channels * element_bytes_;
  DevicePointer place = buffer_;
  Status status;
  for (size_t level = 0; status && level < arrays_.size(); ++level) {
    const launch::LevelExtents extents = launch::extents_of_level(plan_, static_cast<uint32_t>(level));
    ArrayCopy copy{};
    copy.width_bytes = extents.width * texel_bytes;
    copy.height = extents.rows;
    copy.depth = extents.planes;
    copy.source_type = to_array ? MemoryType::device : MemoryType::array;
    copy.target_type = to_array ? MemoryType::array : MemoryType::device;
    (to_array ? copy.source_device : copy.target_device) = place;
    (to_array ? copy.source_pitch : copy.target_pitch) = plan_.pitch ? plan_.pitch : copy.width_bytes;
    (to_array ? copy.source_height : copy.target_height) = extents.rows;
    (to_array ? copy.target_array : copy.source_array) = arrays_[level];
    status = gpu_.check("cuMemcpy3D", gpu_.driver().copy_array(&copy));
    place += copy.width_bytes * extents.rows * extents.planes;
  }
  return status;
}

} // namespace ptxrewrite::driver
