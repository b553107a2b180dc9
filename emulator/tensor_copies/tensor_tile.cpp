// Tensor copies that are invalid (PTX ISA 5.5 and 9.7.9.27.1.1), and copies that are not emulated because the layout of
// their bytes is not documented publicly.
#include "emulator/tensor_copies/tensor_tile.h"

#include <fmt/format.h>

namespace ptxrewrite::emulator {
namespace {

using ir::TensorAccess;
using ir::TensorElement;

std::string not_emulated(const TensorTile& tile) {
  const ir::TensorMap& map = tile.map;
  if (map.interleave != ir::TensorInterleave::none) return "an interleaved layout, which is not emulated";
  // Are rows adjacent, or each in a span of its own? The manual shows only rows that fill the span.
  if (const unsigned span = ir::span_bytes(map.swizzle); span > tile.row_bytes() && tile.rows() > 1)
    return fmt::format("rows of {} bytes in a swizzle of {}, which is not emulated", tile.row_bytes(), span);
  return {};
}

std::string column_fault(const TensorTile& tile, bool stores) {
  const ir::TensorMap& map = tile.map;
  constexpr uint32_t limits[] = {1 << 16, 1 << 8, 1 << 5}; // limits of offsets, by the number of offsets
  for (unsigned i = 0; i + 2 < map.rank; ++i) {
    const int64_t low = map.lower_corner[i], end = static_cast<int64_t>(map.dims[i + 1]) + map.upper_corner[i];
    if (const int32_t at = tile.coordinates[i + 1]; at < low || at >= end)
      return fmt::format("coordinate {} is {}, outside of the map's corners {} and {}", i + 1, at, low, end - 1);
    if (tile.offsets[i] >= limits[map.rank - 3])
      return fmt::format("an im2col offset of {}; at most {} is possible", tile.offsets[i], limits[map.rank - 3] - 1);
    if (stores && (low < 0 || map.upper_corner[i] > 0))
      return "corners outside of the tensor, which a store may not have";
  }
  return {};
}

std::string row_fault(const TensorTile& tile, bool stores) {
  const ir::TensorMap& map = tile.map;
  const bool of_128 = tile.shape == TileShape::row_of_128;
  const uint32_t most_halo = of_128 ? 32 : 512, halo = tile.offsets[0], offset = tile.offsets[1];
  if (halo >= most_halo) return fmt::format("a halo of {} pixels; at most {} are possible", halo, most_halo - 1);
  if (offset >= 32) return fmt::format("an offset of {} pixels; at most 31 are possible", offset);
  if (of_128 && map.swizzle == ir::SwizzleSpan::bytes96) return "a swizzle of 96 bytes, which im2col::w::128 has not";
  if (map.interleave != ir::TensorInterleave::none) return "an interleaved layout, which im2col::w has not";
  const detail::PixelRow pixels(tile);
  if (pixels.first >= pixels.end)
    return fmt::format("coordinate 1 is {}, beyond the end of the map's box, {}", pixels.first, pixels.end - 1);
  if (stores && (map.lower_corner[0] < 0 || map.upper_corner[0] > 0))
    return "corners outside of the tensor, which a store may not have";
  // The manual shows only halos within an image.
  const uint64_t group = tile.pixels_of_group();
  for (uint64_t i = group; halo > 0 && i <= tile.main_pixels(); i += group)
    if (pixels.at(static_cast<int64_t>(i) - 1).w + static_cast<int64_t>(halo) * pixels.stride >= pixels.end)
      return "a halo that reaches beyond the map's box, which is not emulated: public text does not say what it loads "
             "there";
  return {};
}

const char* name_of(TensorAccess access) {
  switch (access) {
  case TensorAccess::tiled:
    return "tiles";
  case TensorAccess::im2col:
    return "im2col";
  case TensorAccess::im2col_w:
    return "im2col::w";
  case TensorAccess::im2col_w128:
    return "im2col::w::128";
  }
  return "";
}

bool fits(TensorAccess access, TileShape shape) {
  switch (shape) {
  case TileShape::box:
  case TileShape::four_rows:
    return access == TensorAccess::tiled;
  case TileShape::column:
    return access == TensorAccess::im2col;
  case TileShape::row:
    return access == TensorAccess::im2col_w;
  case TileShape::row_of_128:
    return access == TensorAccess::im2col_w128;
  }
  return false;
}

} // namespace

uint64_t TensorTile::rows() const {
  switch (shape) {
  case TileShape::row:
  case TileShape::row_of_128:
    return main_pixels() + main_pixels() / pixels_of_group() * offsets[0];
  case TileShape::four_rows:
    return 4;
  case TileShape::column:
    return map.pixels;
  case TileShape::box:
    break;
  }
  uint64_t rows = 1;
  for (unsigned i = 1; i < map.rank; ++i)
    rows *= (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
  return rows;
}

std::string find_fault(const TensorTile& tile, bool stores) {
  const ir::TensorMap& map = tile.map;
  if (!fits(map.access, tile.shape)) return fmt::format("the map is one of {}", name_of(map.access));
  if (tile.shape == TileShape::four_rows && map.box[1] != 1)
    return fmt::format("the map's box has {} rows; four rows that are named one by one want 1", map.box[1]);
  if (std::string wrong = not_emulated(tile); !wrong.empty()) return wrong;
  if (map.element == TensorElement::b4x16 && tile.coordinates[0] % 2 != 0)
    return fmt::format("coordinate 0 is {}; of elements of 4 bits it has to be even", tile.coordinates[0]);
  if (ir::is_padded(map.element) && tile.coordinates[0] % 128 != 0)
    return fmt::format("coordinate 0 is {}; of elements of type {} it has to be a multiple of 128", tile.coordinates[0],
                       spelling(map.element));
  if (stores) {
    if (map.element == TensorElement::b4x16_p64)
      return fmt::format("a store of elements of type {}, which there are only loads of", spelling(map.element));
    if (map.atom == ir::SwizzleAtom::bytes32_flip8) return "a swizzle that flips 8 bytes is for loads";
    const unsigned count = tile.shape == TileShape::four_rows ? 5 : map.rank;
    for (unsigned i = 0; i < count; ++i)
      if (tile.coordinates[i] < 0)
        return fmt::format("coordinate {} is {}; a store has none below 0", i, tile.coordinates[i]);
  }
  switch (tile.shape) {
  case TileShape::column:
    return column_fault(tile, stores);
  case TileShape::row:
  case TileShape::row_of_128:
    return row_fault(tile, stores);
  case TileShape::box:
  case TileShape::four_rows:
    break;
  }
  return {};
}

} // namespace ptxrewrite::emulator
