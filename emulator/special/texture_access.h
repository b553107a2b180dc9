// Shared by the instructions on textures and on surfaces: handles and coordinates.
#pragma once

#include "emulator/core/block.h"
#include "emulator/core/decode.h"
#include "emulator/core/watch.h"
#include "emulator/memory/texture.h"

#include <array>
#include <optional>

namespace ptxrewrite::emulator {

struct Geometry {
  unsigned dimensions = 0; // number of coordinates; three for cubes
  bool layered = false;
  bool cube = false;
};
// `.1d` to `.3d`, `.a1d`, `.a2d`, `.cube`, `.acube`; returns nullopt for multi-sample textures.
std::optional<Geometry> geometry_of(const ir::Form& form);

// The parts of [texture, sampler, {coordinates}] or [texture, {coordinates}]: the sampler's properties come from the
// texture's binding. All are 32-bit lanes except the handle.
struct TextureOperand {
  LaneRef handle;
  std::vector<LaneRef> coordinates; // layer first
};
// Calls decoder.unsupported if the operand is none.
TextureOperand texture_operand(Decoder& decoder, unsigned top_level_index);

// The texels of a bound texture, located once per instruction.
struct BoundTexture {
  const TextureBinding* binding = nullptr;
  std::byte* texels = nullptr;

  std::byte* at(uint64_t x, uint64_t y, uint64_t plane) const {
    return texels + (plane * binding->rows() + y) * binding->row_distance() + x * binding->texel_bytes();
  }
};
class TextureLookup {
public:
  TextureLookup(Warp& warp, const MicroOp& op) : warp_(warp), op_(op) {}
  // Returns nullptr after the block has failed.
  const BoundTexture* find(unsigned lane);

private:
  Warp& warp_;
  const MicroOp& op_; // source[0]: handles
  uint64_t handle_ = 0;
  BoundTexture texture_;
};

// Collects the lanes' accesses to texels for an observer: the first texel of each lane forms one access of
// the warp, then the second texels, and so on. Without an observer nothing is collected.
class TexelAccesses {
public:
  TexelAccesses(Warp& warp, const MicroOp& op) : warp_(warp), op_(op), wanted_(is_wanted(*warp.block)) {}
  // `bytes`: the same for all lanes.
  void add(unsigned lane, const BoundTexture& texture, const std::byte* at, uint64_t bytes) {
    if (wanted_) [[unlikely]]
      keep(lane, texture.binding->address + static_cast<uint64_t>(at - texture.texels), bytes);
  }
  // Reports all accesses that were added, each with the mask of its lanes.
  void tell(AccessKind kind);

private:
  static constexpr unsigned most_texels = 16; // the corners of a cube in two levels of detail
  static bool is_wanted(const Block& block);
  void keep(unsigned lane, uint64_t address, uint64_t bytes);

  Warp& warp_;
  const MicroOp& op_;
  bool wanted_;
  uint64_t bytes_ = 0;
  std::array<uint32_t, most_texels> lanes_{}; // lanes with more than this number of texels
  std::array<std::array<uint64_t, warp_size>, most_texels> addresses_;
};

} // namespace ptxrewrite::emulator
