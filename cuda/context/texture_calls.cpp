#include "cuda/context/texture_calls.h"

#include "cuda/context/log.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>

namespace ptxrewrite::cuda {
namespace {

std::set<const Array*>& arrays() {
  static auto* made = new std::set<const Array*>;
  return *made;
}

std::set<const MipmappedArray*>& mipmapped_arrays() {
  static auto* made = new std::set<const MipmappedArray*>;
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

Code bind_mipmapped(const MipmappedArray* mipmapped, emulator::TextureBinding& binding) {
  if (!mipmapped_arrays().contains(mipmapped)) return Code::invalid_handle;
  if (const Code code = bind_array(mipmapped->levels[0].get(), binding); code != Code::success) return code;
  binding.mipmap.count = static_cast<unsigned>(mipmapped->levels.size());
  return Code::success;
}

Code bind_memory(const TextureResource& resource, emulator::TextureBinding& binding) {
  if (const Code code = check_channels(resource.channels); code != Code::success) return code;
  set_texels(resource.channels, binding);
  binding.address = resource.address;
  binding.width = resource.width;
  binding.height = resource.height;
  binding.is_linear = true;
  if (resource.height == 0) return Code::success;
  if (resource.pitch < binding.row_bytes()) return Code::invalid_value;
  binding.pitch = resource.pitch;
  return Code::success;
}

Code bind_resource(const TextureResource& resource, emulator::TextureBinding& binding) {
  switch (resource.kind) {
  case TextureResource::Kind::array:
    return bind_array(resource.array, binding);
  case TextureResource::Kind::linear:
  case TextureResource::Kind::pitched:
    return bind_memory(resource, binding);
  case TextureResource::Kind::mipmapped_array:
    return bind_mipmapped(resource.mipmapped, binding);
  }
  return Code::invalid_value;
}

// Values of cudaResourceViewFormat in order: unsigned and signed integers of 8, 16 and 32 bits, halves, floats, each
// with 1, 2 and 4 channels; then block-compressed formats, which are not supported.
Code set_view_format(int format, emulator::TextureBinding& binding) {
  constexpr ChannelDescription kinds[] = {{.x = 8, .kind = 1},  {.x = 8, .kind = 0},  {.x = 16, .kind = 1},
                                          {.x = 16, .kind = 0}, {.x = 32, .kind = 1}, {.x = 32, .kind = 0},
                                          {.x = 16, .kind = 2}, {.x = 32, .kind = 2}};
  const unsigned bytes = binding.texel_bytes();
  if (format < 0) return Code::invalid_value;
  if (const auto kind = static_cast<size_t>(format - 1) / 3; kind < std::size(kinds)) {
    set_texels(kinds[kind], binding);
    binding.channels = 1u << (format - 1) % 3;
    if (binding.texel_bytes() == bytes) return Code::success;
  }
  log_once(LogLevel::warn, "resource views of textures in compressed formats are not emulated");
  return Code::not_supported;
}

Code set_view(const ResourceView& view, const TextureResource& resource, emulator::TextureBinding& binding) {
  using Kind = TextureResource::Kind;
  if (resource.kind != Kind::array && resource.kind != Kind::mipmapped_array) return Code::invalid_value;
  if (view.format != 0)
    if (const Code code = set_view_format(view.format, binding); code != Code::success) return code;
  const unsigned levels = binding.mipmap.count;
  if (view.first_level > view.last_level || view.last_level >= levels) return Code::invalid_value;
  if (view.last_layer > 0) {
    if (!binding.layered || view.first_layer > view.last_layer || view.last_layer >= binding.depth)
      return Code::invalid_value;
    if (levels > 1) {
      log_once(LogLevel::warn, "resource views of some layers of a mipmapped array are not emulated");
      return Code::not_supported;
    }
    binding.address += view.first_layer * (binding.bytes() / binding.planes());
    binding.depth = view.last_layer - view.first_layer + 1;
  }
  binding = binding.level(view.first_level);
  binding.mipmap.count = view.last_level - view.first_level + 1;
  return Code::success;
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
  binding.mipmap.filter = sampling.linear_levels ? emulator::TextureFilter::linear : emulator::TextureFilter::nearest;
  binding.mipmap.bias = sampling.level_bias;
  binding.mipmap.least = sampling.least_level;
  binding.mipmap.most = sampling.most_level;
  // Wrapping and mirroring require normalised coordinates; otherwise coordinates are clamped (CUDA programming guide,
  // texture memory).
  if (!binding.normalised_coordinates && (binding.addressing == emulator::TextureAddressing::wrap ||
                                          binding.addressing == emulator::TextureAddressing::mirror))
    binding.addressing = emulator::TextureAddressing::clamp;
  return Code::success;
}

Code bind_texture(const TextureResource& resource, const Sampling& sampling, emulator::TextureBinding& binding,
                  const ResourceView* view = nullptr) {
  if (const Code code = bind_resource(resource, binding); code != Code::success) return code;
  if (view)
    if (const Code code = set_view(*view, resource, binding); code != Code::success) return code;
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
  if (!is_array(array) || array->is_level) return Code::invalid_value;
  arrays().erase(array);
  const Code code = context.release(array->address);
  delete array;
  return code;
}

bool is_array(const Array* array) {
  return arrays().contains(array);
}

Code create_mipmapped_array(Context& context, MipmappedArray** made, const ChannelDescription& channels, uint64_t width,
                            uint64_t height, uint64_t depth, unsigned levels, unsigned flags) {
  if (!made || width == 0) return Code::invalid_value;
  if (const Code code = check_channels(channels); code != Code::success) return code;
  if ((flags & flag_cube) && !is_valid_cube(width, height, depth, flags & flag_layered)) return Code::invalid_value;
  emulator::TextureBinding whole{.width = width, .height = height, .depth = depth};
  set_texels(channels, whole);
  whole.layered = flags & (flag_layered | flag_cube);
  const uint64_t longest = std::max({width, height, whole.layered ? 0 : depth});
  whole.mipmap.count = std::clamp(levels, 1u, static_cast<unsigned>(std::bit_width(longest)));
  if (const Code code = context.allocate(whole.bytes_of_levels(), whole.address); code != Code::success) return code;
  auto result = std::make_unique<MipmappedArray>();
  for (unsigned i = 0; i < whole.mipmap.count; ++i) {
    const emulator::TextureBinding level = whole.level(i);
    result->levels.push_back(
        std::make_unique<Array>(Array{channels, level.width, level.height, level.depth, flags, level.address, true}));
    arrays().insert(result->levels.back().get());
  }
  *made = result.release();
  mipmapped_arrays().insert(*made);
  return Code::success;
}

Code destroy_mipmapped_array(Context& context, MipmappedArray* mipmapped) {
  if (!mipmapped_arrays().erase(mipmapped)) return Code::invalid_handle;
  for (const auto& level : mipmapped->levels)
    arrays().erase(level.get());
  const Code code = context.release(mipmapped->levels[0]->address);
  delete mipmapped;
  return code;
}

Code mipmap_level(Array** level, const MipmappedArray* mipmapped, unsigned number) {
  if (!mipmapped_arrays().contains(mipmapped)) return Code::invalid_handle;
  if (!level || number >= mipmapped->levels.size()) return Code::invalid_value;
  *level = mipmapped->levels[number].get();
  return Code::success;
}

Code create_texture(Context& context, uint64_t* object, const TextureResource& resource, const Sampling& sampling,
                    const ResourceView* view) {
  if (!object) return Code::invalid_value;
  emulator::TextureBinding binding;
  if (const Code code = bind_texture(resource, sampling, binding, view); code != Code::success) return code;
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
