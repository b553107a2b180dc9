// CUDA arrays, texture and surface objects, as both APIs use them.
#pragma once

#include "cuda/context/array.h"
#include "cuda/context/context.h"

namespace ptxrewrite::cuda {

// The memory that a texture or a surface accesses.
struct TextureResource {
  enum class Kind : uint8_t { array, mipmapped_array, linear, pitched };
  Kind kind = Kind::array;
  const Array* array = nullptr;
  const MipmappedArray* mipmapped = nullptr;
  // Without an array:
  uint64_t address = 0;
  ChannelDescription channels{};
  uint64_t width = 0, height = 0, pitch = 0; // texels, rows, bytes; linear memory has only a width
};

struct Sampling {
  int address_mode = 1; // 0 wrap, 1 clamp, 2 mirror, 3 border
  bool linear_filter = false;
  bool normalised_coordinates = false;
  bool normalised_float = false; // integers are read as numbers in 0 .. 1 or -1 .. 1
  bool linear_levels = false;    // filtering between levels of detail
  float level_bias = 0, least_level = 0, most_level = 0;
};

// cudaResourceViewDesc, CUDA_RESOURCE_VIEW_DESC: the levels and layers of an array that a texture reads, and their
// format.
struct ResourceView {
  int format; // 0: as the array's
  size_t width, height, depth;
  unsigned first_level, last_level, first_layer, last_layer;
  unsigned reserved[16];
};

// `flags`: as in Array.
Code create_array(Context& context, Array** made, const ChannelDescription& channels, uint64_t width, uint64_t height,
                  uint64_t depth, unsigned flags);
Code destroy_array(Context& context, Array* array);
bool is_array(const Array* array);
// `levels`: at most until all dimensions are 1; more are not made.
Code create_mipmapped_array(Context& context, MipmappedArray** made, const ChannelDescription& channels, uint64_t width,
                            uint64_t height, uint64_t depth, unsigned levels, unsigned flags);
Code destroy_mipmapped_array(Context& context, MipmappedArray* mipmapped);
Code mipmap_level(Array** level, const MipmappedArray* mipmapped, unsigned number);
// `view` may be null.
Code create_texture(Context& context, uint64_t* object, const TextureResource& resource, const Sampling& sampling,
                    const ResourceView* view);
Code create_surface(Context& context, uint64_t* object, const TextureResource& resource);
// Texture and surface references: `address` of the module's .texref or .surfref variable.
Code bind_texture_reference(Context& context, uint64_t address, const TextureResource& resource,
                            const Sampling& sampling);
Code bind_surface_reference(Context& context, uint64_t address, const TextureResource& resource);

} // namespace ptxrewrite::cuda
