#include "cuda/context/texture_calls.h"

#include "cuda/context/log.h"

#include <set>

namespace ptxrewrite::cuda {
namespace {

std::set<const Array*>& arrays() {
  static auto* made = new std::set<const Array*>;
  return *made;
}

Code check_channels(const ChannelDescription& channels) {
  const int bits = channels.x;
  if (bits != 8 && bits != 16 && bits != 32) return Code::invalid_channel_descriptor;
  for (int other : {channels.y, channels.z, channels.w})
    if (other != 0 && other != bits) return Code::invalid_channel_descriptor;
  return Code::success;
}

// Bits of Array::flags.
constexpr unsigned flag_layered = 1, flag_cube = 4;
constexpr uint64_t cube_faces = 6;

// A cube map has square faces, as planes; an array of cube maps has a multiple of six (cudaMalloc3DArray).
bool is_valid_cube(uint64_t width, uint64_t height, uint64_t depth, bool layered) {
  return width == height && (layered ? depth > 0 && depth % cube_faces == 0 : depth == cube_faces);
}

// Sets type and number of channels.
void set_texels(const ChannelDescription& channels, emulator::TextureBinding& binding) {
  binding.kind = channels.kind == 2   ? emulator::TexelKind::floating
                 : channels.kind == 0 ? emulator::TexelKind::signed_integer
                                      : emulator::TexelKind::unsigned_integer;
  binding.channel_bits = static_cast<unsigned>(channels.x);
  binding.channels = 1 + (channels.y != 0) + (channels.z != 0) + (channels.w != 0);
}

Code bind_array(const Array* array, emulator::TextureBinding& binding) {
  if (!is_array(array)) return Code::invalid_handle;
  set_texels(array->channels, binding);
  binding.address = array->address;
  binding.width = array->width;
  binding.height = array->height;
  binding.depth = array->depth;
  binding.layered = array->flags & flag_layered;
  return Code::success;
}

Code bind_memory(const TextureResource& resource, emulator::TextureBinding& binding) {
  if (const Code code = check_channels(resource.channels); code != Code::success) return code;
  set_texels(resource.channels, binding);
  binding.address = resource.address;
  binding.width = resource.width;
  binding.height = resource.height;
  binding.is_linear = true;
  if (resource.height == 0 || resource.pitch == binding.width * binding.texel_bytes()) return Code::success;
  log_once(LogLevel::warn, "textures over pitched memory with gaps between rows are not emulated");
  return Code::not_supported;
}

Code bind_resource(const TextureResource& resource, emulator::TextureBinding& binding) {
  switch (resource.kind) {
  case TextureResource::Kind::array:
    return bind_array(resource.array, binding);
  case TextureResource::Kind::linear:
  case TextureResource::Kind::pitched:
    return bind_memory(resource, binding);
  case TextureResource::Kind::mipmapped_array:
    break;
  }
  log_once(LogLevel::warn, "mipmapped arrays are not emulated");
  return Code::not_supported;
}

Code set_sampling(const Sampling& sampling, emulator::TextureBinding& binding) {
  constexpr emulator::TextureAddressing modes[] = {
      emulator::TextureAddressing::wrap, emulator::TextureAddressing::clamp, emulator::TextureAddressing::mirror,
      emulator::TextureAddressing::border};
  if (sampling.address_mode < 0 || sampling.address_mode > 3) return Code::invalid_value;
  binding.addressing = modes[sampling.address_mode];
  binding.filter = sampling.linear_filter ? emulator::TextureFilter::linear : emulator::TextureFilter::nearest;
  binding.normalised_coordinates = sampling.normalised_coordinates;
  binding.normalised_float = sampling.normalised_float && binding.channel_bits < 32;
  // Wrapping and mirroring require normalised coordinates; otherwise coordinates are clamped (CUDA programming guide,
  // texture memory).
  if (!binding.normalised_coordinates && (binding.addressing == emulator::TextureAddressing::wrap ||
                                          binding.addressing == emulator::TextureAddressing::mirror))
    binding.addressing = emulator::TextureAddressing::clamp;
  return Code::success;
}

Code bind_texture(const TextureResource& resource, const Sampling& sampling, emulator::TextureBinding& binding) {
  if (const Code code = bind_resource(resource, binding); code != Code::success) return code;
  return set_sampling(sampling, binding);
}

} // namespace

Code create_array(Context& context, Array** made, const ChannelDescription& channels, uint64_t width, uint64_t height,
                  uint64_t depth, unsigned flags) {
  if (!made || width == 0) return Code::invalid_value;
  if (const Code code = check_channels(channels); code != Code::success) return code;
  if ((flags & flag_cube) && !is_valid_cube(width, height, depth, flags & flag_layered)) return Code::invalid_value;
  auto array = std::make_unique<Array>(Array{channels, width, height, depth, flags});
  if (const Code code = context.allocate(array->bytes(), array->address); code != Code::success) return code;
  arrays().insert(array.get());
  *made = array.release();
  return Code::success;
}

Code destroy_array(Context& context, Array* array) {
  if (!arrays().erase(array)) return Code::invalid_value;
  const Code code = context.release(array->address);
  delete array;
  return code;
}

bool is_array(const Array* array) {
  return arrays().contains(array);
}

Code create_texture(Context& context, uint64_t* object, const TextureResource& resource, const Sampling& sampling) {
  if (!object) return Code::invalid_value;
  emulator::TextureBinding binding;
  if (const Code code = bind_texture(resource, sampling, binding); code != Code::success) return code;
  *object = context.add_texture(binding);
  return Code::success;
}

Code bind_texture_reference(Context& context, uint64_t address, const TextureResource& resource,
                            const Sampling& sampling) {
  emulator::TextureBinding binding;
  if (const Code code = bind_texture(resource, sampling, binding); code != Code::success) return code;
  context.bind_reference(address, binding);
  return Code::success;
}

Code bind_surface_reference(Context& context, uint64_t address, const TextureResource& resource) {
  emulator::TextureBinding binding;
  if (const Code code = bind_array(resource.array, binding); code != Code::success) return code;
  context.bind_reference(address, binding);
  return Code::success;
}

Code create_surface(Context& context, uint64_t* object, const TextureResource& resource) {
  if (!object || resource.kind != TextureResource::Kind::array) return Code::invalid_value;
  emulator::TextureBinding binding;
  if (const Code code = bind_array(resource.array, binding); code != Code::success) return code;
  *object = context.add_texture(binding);
  return Code::success;
}

} // namespace ptxrewrite::cuda
