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

FilterMode filter_of(const launch::Texture& texture) {
  return texture.filter == launch::FilterMode::linear ? FilterMode::linear : FilterMode::nearest;
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
  if (array_) gpu_.driver().destroy_array(array_);
}

Status GpuTexture::create_array(bool stores) {
  const ArrayDescription description{
      plan_.width, plan_.height,   plan_.depth,
      format_,     plan_.channels, (plan_.layered ? array_layered : 0) | (stores ? array_surface : 0)};
  return gpu_.check("cuArray3DCreate", gpu_.driver().create_array(&array_, &description));
}

unsigned GpuTexture::flags() const {
  return (is_integer_ && !plan_.normalised_float ? texture_read_as_integer : 0) |
         (plan_.normalised_coordinates ? texture_normalised_coordinates : 0);
}

Status GpuTexture::create_objects(bool stores) {
  ResourceDescription resource{};
  if (array_) {
    resource.type = ResourceType::array;
    resource.array = array_;
  } else {
    resource.type = ResourceType::linear;
    resource.linear = {buffer_, format_, plan_.channels, row_bytes()};
  }
  TextureDescription description{};
  std::ranges::fill(description.address_modes, mode_of(plan_.address));
  description.filter = filter_of(plan_);
  description.flags = flags();
  if (Status status =
          gpu_.check("cuTexObjectCreate", gpu_.driver().create_texture(&texture_, &resource, &description, nullptr));
      !status || !stores)
    return status;
  return gpu_.check("cuSurfObjectCreate", gpu_.driver().create_surface(&surface_, &resource));
}

Status GpuTexture::bind_reference(const GpuModule& module, std::string_view name) {
  const Library& driver = gpu_.driver();
  TextureReferenceHandle reference = nullptr;
  Status status =
      gpu_.check("cuModuleGetTexRef", driver.texture_reference(&reference, module.handle(), std::string(name).c_str()));
  if (status && array_)
    status = gpu_.check("cuTexRefSetArray", driver.reference_array(reference, array_, reference_takes_array_format));
  if (status && !array_) {
    status =
        gpu_.check("cuTexRefSetFormat", driver.reference_format(reference, format_, static_cast<int>(plan_.channels)));
    size_t offset = 0;
    if (status)
      status = gpu_.check("cuTexRefSetAddress", driver.reference_address(&offset, reference, buffer_, row_bytes()));
  }
  for (int dimension = 0; dimension < 3 && status; ++dimension)
    status = gpu_.check("cuTexRefSetAddressMode",
                        driver.reference_address_mode(reference, dimension, mode_of(plan_.address)));
  if (status) status = gpu_.check("cuTexRefSetFilterMode", driver.reference_filter(reference, filter_of(plan_)));
  if (status) status = gpu_.check("cuTexRefSetFlags", driver.reference_flags(reference, flags()));
  return status;
}

Status GpuTexture::bind_surface_reference(const GpuModule& module, std::string_view name) {
  SurfaceReferenceHandle reference = nullptr;
  if (Status status = gpu_.check("cuModuleGetSurfRef", gpu_.driver().surface_reference(&reference, module.handle(),
                                                                                       std::string(name).c_str()));
      !status)
    return status;
  return gpu_.check("cuSurfRefSetArray", gpu_.driver().surface_array(reference, array_, 0));
}

Status GpuTexture::take_from_buffer() {
  return array_ ? copy(true) : Status();
}
Status GpuTexture::give_to_buffer() {
  return array_ ? copy(false) : Status();
}

// Copies all rows, planes and layers.
Status GpuTexture::copy(bool to_array) {
  const size_t rows = std::max<size_t>(plan_.height, 1);
  ArrayCopy copy{};
  copy.width_bytes = row_bytes();
  copy.height = rows;
  copy.depth = std::max<size_t>(plan_.depth, 1);
  copy.source_type = to_array ? MemoryType::device : MemoryType::array;
  copy.target_type = to_array ? MemoryType::array : MemoryType::device;
  (to_array ? copy.source_device : copy.target_device) = buffer_;
  (to_array ? copy.source_pitch : copy.target_pitch) = plan_.pitch ? plan_.pitch : row_bytes();
  (to_array ? copy.source_height : copy.target_height) = rows;
  (to_array ? copy.target_array : copy.source_array) = array_;
  return gpu_.check("cuMemcpy3D", gpu_.driver().copy_array(&copy));
}

} // namespace ptxrewrite::driver
