#include "emulator/memory/texture_layout.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t gob_width = 64; // bytes
constexpr uint64_t gob_height = 8; // rows
constexpr uint64_t gob_bytes = gob_width * gob_height;

uint64_t offset_in_gob(uint64_t x, uint64_t y) {
  return x / 32 * 256 + y / 2 * 64 + x % 32 / 16 * 32 + y % 2 * 16 + x % 16;
}

} // namespace

uint64_t block_linear_offset(const TextureBinding& texture, uint64_t offset) {
  const uint64_t x = offset % texture.row_distance();
  const uint64_t row = offset / texture.row_distance();
  const uint64_t y = row % texture.rows();
  const uint64_t plane = row / texture.rows();
  const uint64_t gobs_of_row = (texture.row_distance() + gob_width - 1) / gob_width;
  const uint64_t rows_of_gobs = (texture.rows() + gob_height - 1) / gob_height;
  const uint64_t gob = (plane * rows_of_gobs + y / gob_height) * gobs_of_row + x / gob_width;
  return gob * gob_bytes + offset_in_gob(x % gob_width, y % gob_height);
}

TextureLayout::TextureLayout(const TextureTable& textures) {
  for (const auto& [handle, texture] : textures)
    if (texture.height > 0 && !texture.is_linear) arrays_.push_back(texture);
  std::sort(arrays_.begin(), arrays_.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
}

uint64_t TextureLayout::stored_at(uint64_t address) const {
  auto after = std::upper_bound(arrays_.begin(), arrays_.end(), address,
                                [](uint64_t wanted, const auto& texture) { return wanted < texture.address; });
  if (after == arrays_.begin()) return address;
  const TextureBinding& texture = *--after;
  const uint64_t offset = address - texture.address;
  if (offset >= texture.bytes()) return address;
  return texture.address + block_linear_offset(texture, offset);
}

} // namespace ptxrewrite::emulator
