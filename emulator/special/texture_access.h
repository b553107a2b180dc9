// What the instructions on textures and on surfaces share: handles and coordinates.
#pragma once

#include "emulator/block.h"
#include "emulator/decode.h"
#include "emulator/texture.h"

#include <array>
#include <optional>

namespace ptxrewrite::emulator {

struct Geometry {
  unsigned dimensions = 0;
  bool layered = false;
};
// `.1d` to `.3d`, `.a1d`, `.a2d`; nothing for cubes and multi-sample textures.
std::optional<Geometry> geometry_of(const ir::Form& form);

// The parts of [texture, sampler, {coordinates}] or [texture, {coordinates}]: what the sampler says is taken from the
// texture's binding. All as 32-bit lanes but the handle.
struct TextureOperand {
  LaneRef handle;
  std::vector<LaneRef> coordinates; // layer first
};
// Calls decoder.unsupported when it is none.
TextureOperand texture_operand(Decoder& decoder, unsigned top_level_index);

// The texels of a bound texture, found once for an instruction. Null after the block has failed.
struct BoundTexture {
  const TextureBinding* binding = nullptr;
  std::byte* texels = nullptr;

  std::byte* at(uint64_t x, uint64_t y, uint64_t plane) const {
    return texels + ((plane * binding->rows() + y) * binding->width + x) * binding->texel_bytes();
  }
};
class TextureLookup {
public:
  TextureLookup(Warp& warp, const MicroOp& op) : warp_(warp), op_(op) {}
  // Null after the block has failed.
  const BoundTexture* find(unsigned lane);

private:
  Warp& warp_;
  const MicroOp& op_; // source[0]: handles
  uint64_t handle_ = 0;
  BoundTexture texture_;
};

} // namespace ptxrewrite::emulator
