// Textures and surfaces: arrays of texels in the emulated GPU's memory, and their access modes.
#pragma once

#include "support/sizes.h"

#include <cstdint>
#include <map>

namespace ptxrewrite::emulator {

enum class TexelKind : uint8_t { unsigned_integer, signed_integer, floating };
enum class TextureAddressing : uint8_t { wrap, clamp, mirror, border };
enum class TextureFilter : uint8_t { nearest, linear };

struct TextureBinding {
  uint64_t address = 0; // global; rows, planes and layers without gaps
  TexelKind kind = TexelKind::floating;
  unsigned channel_bits = 32; // 8, 16 or 32
  unsigned channels = 1;      // 1, 2 or 4
  uint64_t width = 0;         // texels
  uint64_t height = 0;        // 0: one-dimensional
  uint64_t depth = 0;         // 0: at most two-dimensional; with `layered` the number of layers
  bool layered = false;
  TextureAddressing addressing = TextureAddressing::clamp; // wrap and mirror take normalised coordinates only
  TextureFilter filter = TextureFilter::nearest;
  bool normalised_coordinates = false;
  bool is_linear = false; // over linear memory, not an array, which a GPU stores block-linear: affects timing only
  bool normalised_float = false; // integers are read as normalised numbers in 0 .. 1 or -1 .. 1

  unsigned texel_bytes() const { return channels * channel_bits / 8; }
  uint64_t rows() const { return height ? height : 1; }
  uint64_t planes() const { return depth ? depth : 1; }
  uint64_t bytes() const {
    return saturating_multiply(saturating_multiply(width, rows()), saturating_multiply(planes(), texel_bytes()));
  }
};

// By handle: the address of a .texref or .surfref variable, or a number chosen by bind_texture.
using TextureTable = std::map<uint64_t, TextureBinding>;
inline constexpr uint64_t texture_handle_window = 0x7f05'0000'0000;

} // namespace ptxrewrite::emulator
