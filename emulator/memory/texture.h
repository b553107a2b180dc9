// Textures and surfaces: arrays of texels in the emulated GPU's memory, and their access modes.
#pragma once

#include "support/sizes.h"

#include <cstdint>
#include <map>

namespace ptxrewrite::emulator {

enum class TexelKind : uint8_t { unsigned_integer, signed_integer, floating };
enum class TextureAddressing : uint8_t { wrap, clamp, mirror, border };
enum class TextureFilter : uint8_t { nearest, linear };

// Further levels of detail, and their choice. Level 0 is the texture itself.
struct MipmapLevels {
  unsigned count = 1;
  TextureFilter filter = TextureFilter::nearest; // between the two nearest levels
  float bias = 0;                                // added to the level that is asked for
  float least = 0, most = 0;                     // limits of the sum
};

struct TextureBinding {
  uint64_t address = 0; // global
  TexelKind kind = TexelKind::floating;
  unsigned channel_bits = 32; // 8, 16 or 32
  unsigned channels = 1;      // 1, 2 or 4
  uint64_t width = 0;         // texels
  uint64_t height = 0;        // 0: one-dimensional
  uint64_t depth = 0;         // 0: at most two-dimensional; with `layered` the number of layers
  uint64_t pitch = 0;         // bytes from one row to the next; 0: rows, planes and layers have no gaps between them
  bool layered = false;
  TextureAddressing addressing = TextureAddressing::clamp; // wrap and mirror take normalised coordinates only
  TextureFilter filter = TextureFilter::nearest;
  bool normalised_coordinates = false;
  bool is_linear = false; // over linear memory, not an array, which a GPU stores block-linear: affects timing only
  bool normalised_float = false; // integers are read as normalised numbers in 0 .. 1 or -1 .. 1
  MipmapLevels mipmap{};

  unsigned texel_bytes() const { return channels * channel_bits / 8; }
  uint64_t rows() const { return height ? height : 1; }
  uint64_t planes() const { return depth ? depth : 1; }
  uint64_t row_bytes() const { return saturating_multiply(width, texel_bytes()); }
  uint64_t row_distance() const { return pitch ? pitch : row_bytes(); }
  // From the first texel to the end of the last one.
  uint64_t bytes() const {
    const uint64_t before = saturating_multiply(saturating_multiply(rows(), planes()) - 1, row_distance());
    return saturating_add(before, row_bytes());
  }
  // A level by itself: each dimension is half of the previous level's, at least 1; layers are not halved. Levels follow
  // each other in memory.
  TextureBinding level(unsigned number) const;
  uint64_t bytes_of_levels() const;
};

// By handle: the address of a .texref or .surfref variable, or a number chosen by bind_texture.
using TextureTable = std::map<uint64_t, TextureBinding>;
inline constexpr uint64_t texture_handle_window = 0x7f05'0000'0000;

} // namespace ptxrewrite::emulator
