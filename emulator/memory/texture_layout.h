// The order of texels in a GPU's memory, on which the cache lines of a texture access depend. The emulator stores
// texels by rows; a GPU stores two- and three-dimensional arrays "block-linear", so that a cache line holds a
// rectangle.
#pragma once

#include "emulator/memory/texture.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

// The offset at which a block-linear array holds the byte that the emulator keeps at `offset` of `texture`.
//
// 512 bytes, a GOB, hold 64 bytes of 8 rows; within a GOB 32 bytes hold 16 bytes of 2 rows, and 128 bytes hold 32 bytes
// of 4 rows (Linux, drm_fourcc.h, DRM_FORMAT_MOD_NVIDIA_BLOCK_LINEAR_2D; Mesa, src/nouveau/nil). GOBs follow each other
// by rows here. In blocks of several GOBs, as drivers order them, lines and sectors are the same.
uint64_t block_linear_offset(const TextureBinding& texture, uint64_t offset);

class TextureLayout {
public:
  TextureLayout() = default;
  explicit TextureLayout(const TextureTable& textures);

  bool has_arrays() const { return !arrays_.empty(); }
  // Maps an address of a texel in the emulator's memory to a GPU's. One-dimensional textures and those over linear
  // memory stay.
  uint64_t stored_at(uint64_t address) const;

private:
  std::vector<TextureBinding> arrays_; // by address
};

} // namespace ptxrewrite::emulator
