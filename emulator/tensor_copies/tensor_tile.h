// Bytes of global memory that one tensor copy moves, and their offsets in the box (PTX ISA 5.5.3, 5.5.4): the box is
// a dense sequence of rows of dimension 0, in the order of the dimensions, as in shared memory without a swizzle.
// Rows are cut at the end of the tensor.
#pragma once

#include "ir/isa/tensor_map.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace ptxrewrite::emulator {

// .tile; .tile::gather4 and ::scatter4; .im2col; .im2col::w; .im2col::w::128
enum class TileShape : uint8_t { box, four_rows, column, row, row_of_128 };

// One copy, as given by its instruction and its map.
struct TensorTile {
  ir::TensorMap map; // legal: ir::find_fault reports nothing
  TileShape shape = TileShape::box;
  // Of dimension 0, 1, ...; for four_rows: of dimension 0, then the rows' numbers.
  std::array<int32_t, ir::most_tensor_dimensions> coordinates{};
  std::array<uint32_t, 3> offsets{}; // im2col: in the order W, H, D; im2col::w: wHalo and wOffset

  bool is_im2col() const { return shape != TileShape::box && shape != TileShape::four_rows; }
  uint64_t row_elements() const { return is_im2col() ? map.channels : map.box[0]; }
  // For im2col::w: pixels without the halos, and the number of pixels after which a halo follows.
  uint64_t main_pixels() const { return shape == TileShape::row_of_128 ? 128 : map.pixels; }
  uint64_t pixels_of_group() const { return shape == TileShape::row_of_128 ? 32 : map.pixels; }
  // In the box.
  uint64_t row_bytes() const {
    return ir::is_padded(map.element) ? row_elements() : row_elements() * ir::element_bits(map.element) / 8;
  }
  uint64_t rows() const; // at most 256^4
  // Of the whole box, including the part beyond the tensor; at most 2^44.
  uint64_t bytes() const { return row_bytes() * rows(); }
  // That an mbarrier counts: without the padding of elements, as CUTLASS's kernels expect
  // (sm100_blockscaled_mma_warpspecialized.hpp, TmaTransactionBytes).
  uint64_t counted_bytes() const { return rows() * row_elements() * ir::element_bits(map.element) / 8; }
};

// Returns why a copy of this tile to (`stores` false) or from shared memory is invalid or not emulated, else empty.
std::string find_fault(const TensorTile& tile, bool stores);

// Bytes that are contiguous both in global memory and in the box.
struct TileRun {
  bool inside = false;  // inside the tensor; if not, there is no address
  uint64_t address = 0; // in global memory
  uint32_t offset = 0;  // in the box
  uint32_t bytes = 0;
};

namespace detail {

// Element 0 of a row, as if it were inside: its distance from the tensor's address, modulo 2^64.
struct RowPlace {
  bool inside = true; // in all dimensions but dimension 0
  uint64_t distance = 0;
  void move(const ir::TensorMap& map, unsigned dimension, int64_t coordinate) {
    inside = inside && coordinate >= 0 && coordinate < static_cast<int64_t>(map.dims[dimension]);
    distance += static_cast<uint64_t>(coordinate) * map.strides[dimension];
  }
};

// Elements `begin` to `stop` of a row, in chunks of 16 elements that are adjacent in global memory.
template <class Visit>
bool visit_padded(const TensorTile& tile, const RowPlace& place, uint64_t row, bool inside, int64_t begin, int64_t stop,
                  Visit&& visit) {
  constexpr int64_t chunk = 16; // elements, and bytes in the box
  const unsigned bits = ir::element_bits(tile.map.element);
  const uint64_t start = row * tile.row_bytes() + static_cast<uint64_t>(begin - tile.coordinates[0]);
  if (!inside) return visit(TileRun{false, 0, static_cast<uint32_t>(start), static_cast<uint32_t>(stop - begin)});
  for (int64_t at = begin; at < stop; at += chunk)
    if (!visit(TileRun{true, tile.map.address + place.distance + static_cast<uint64_t>(at) * bits / 8,
                       static_cast<uint32_t>(start + static_cast<uint64_t>(at - begin)),
                       static_cast<uint32_t>(chunk * bits / 8)}))
      return false;
  return true;
}

template <class Visit> bool visit_row(const TensorTile& tile, const RowPlace& place, uint64_t row, Visit&& visit) {
  const auto first = static_cast<int64_t>(tile.coordinates[0]), end = first + static_cast<int64_t>(tile.row_elements());
  const auto size = static_cast<int64_t>(tile.map.dims[0]);
  const int64_t from = place.inside ? std::clamp<int64_t>(0, first, end) : end;
  const int64_t to = place.inside ? std::clamp<int64_t>(size, from, end) : end;
  const unsigned bits = ir::element_bits(tile.map.element);
  const auto run = [&](bool inside, int64_t begin, int64_t stop) {
    if (begin == stop) return true;
    if (ir::is_padded(tile.map.element)) return visit_padded(tile, place, row, inside, begin, stop, visit);
    const auto skipped = static_cast<uint64_t>(begin - first) * bits / 8;
    return visit(TileRun{inside, tile.map.address + place.distance + static_cast<uint64_t>(begin) * bits / 8,
                         static_cast<uint32_t>(row * tile.row_bytes() + skipped),
                         static_cast<uint32_t>(static_cast<uint64_t>(stop - begin) * bits / 8)});
  };
  return run(false, first, from) && run(true, from, to) && run(false, to, end);
}

template <class Visit> bool visit_box(const TensorTile& tile, Visit&& visit) {
  const ir::TensorMap& map = tile.map;
  std::array<uint32_t, ir::most_tensor_dimensions> at{};
  for (uint64_t row = 0;; ++row) {
    RowPlace place;
    for (unsigned i = 1; i < map.rank; ++i)
      place.move(map, i, tile.coordinates[i] + static_cast<int64_t>(at[i]));
    if (!visit_row(tile, place, row, visit)) return false;
    unsigned dimension = 1;
    for (; dimension < map.rank; ++dimension) {
      at[dimension] += map.element_strides[dimension];
      if (at[dimension] < map.box[dimension]) break;
      at[dimension] = 0;
    }
    if (dimension >= map.rank) return true;
  }
}

// The pixels of im2col: along W from the copy's start to the last position of the filter's corner, then along the
// next rows of that box, then in the next images.
template <class Visit> bool visit_column(const TensorTile& tile, Visit&& visit) {
  const ir::TensorMap& map = tile.map;
  const unsigned last = map.rank - 1; // dimension of images
  std::array<int64_t, ir::most_tensor_dimensions> at{};
  for (unsigned i = 1; i <= last; ++i)
    at[i] = tile.coordinates[i];
  for (uint32_t pixel = 0; pixel < map.pixels; ++pixel) {
    RowPlace place;
    for (unsigned i = 1; i < last; ++i)
      place.move(map, i, at[i] + tile.offsets[i - 1]);
    place.move(map, last, at[last]);
    if (!visit_row(tile, place, pixel, visit)) return false;
    unsigned dimension = 1;
    for (; dimension < last; ++dimension) {
      at[dimension] += map.element_strides[dimension];
      if (at[dimension] < static_cast<int64_t>(map.dims[dimension]) + map.upper_corner[dimension - 1]) break;
      at[dimension] = map.lower_corner[dimension - 1];
    }
    if (dimension == last) ++at[last];
  }
  return true;
}

// Positions along W of the pixels of an im2col::w copy (PTX ISA 5.5.5): from the first one by the traversal stride to
// the box's end, then from the box's beginning in the next image, with the same H and D.
struct PixelRow {
  int64_t first = 0;          // along W
  int64_t begin = 0, end = 0; // of the box
  int64_t stride = 1;
  int64_t in_first_image = 0, in_image = 0; // in pixels

  explicit PixelRow(const TensorTile& tile)
      : first(tile.coordinates[1] + int64_t(tile.offsets[1])),
        begin(tile.map.lower_corner[0] + int64_t(tile.offsets[1])),
        end(static_cast<int64_t>(tile.map.dims[1]) + tile.map.upper_corner[0] + int64_t(tile.offsets[1])),
        stride(tile.map.element_strides[1]), in_first_image((end - first + stride - 1) / stride),
        in_image((end - begin + stride - 1) / stride) {}

  struct Place {
    int64_t w = 0, image = 0; // image: relative to the image of the first pixel
  };
  Place at(int64_t pixel) const {
    if (pixel < in_first_image) return {first + pixel * stride, 0};
    pixel -= in_first_image;
    return {begin + pixel % in_image * stride, 1 + pixel / in_image};
  }
};

// The pixels of im2col::w, with the halo after the last pixel or after each group.
template <class Visit> bool visit_pixel_row(const TensorTile& tile, Visit&& visit) {
  const ir::TensorMap& map = tile.map;
  const unsigned last = map.rank - 1; // dimension of images
  const PixelRow pixels(tile);
  uint64_t row = 0;
  const auto visit_pixel = [&](const PixelRow::Place& pixel) {
    RowPlace place;
    place.move(map, 1, pixel.w);
    for (unsigned i = 2; i < last; ++i)
      place.move(map, i, tile.coordinates[i]);
    place.move(map, last, tile.coordinates[last] + pixel.image);
    return visit_row(tile, place, row++, visit);
  };
  const auto count = static_cast<int64_t>(tile.main_pixels()), group = static_cast<int64_t>(tile.pixels_of_group());
  for (int64_t i = 0; i < count; ++i) {
    const PixelRow::Place pixel = pixels.at(i);
    if (!visit_pixel(pixel)) return false;
    if ((i + 1) % group != 0) continue;
    for (uint32_t halo = 1; halo <= tile.offsets[0]; ++halo)
      if (!visit_pixel({pixel.w + halo * pixels.stride, pixel.image})) return false;
  }
  return true;
}

} // namespace detail

// Calls visit(const TileRun&) -> bool for all runs of the tile, in the order of their offsets, until one returns false.
// Returns false in that case, else true.
template <class Visit> bool for_each_run(const TensorTile& tile, Visit&& visit) {
  switch (tile.shape) {
  case TileShape::box:
    return detail::visit_box(tile, visit);
  case TileShape::column:
    return detail::visit_column(tile, visit);
  case TileShape::row:
  case TileShape::row_of_128:
    return detail::visit_pixel_row(tile, visit);
  case TileShape::four_rows:
    for (unsigned row = 0; row < 4; ++row) {
      detail::RowPlace place;
      place.move(tile.map, 1, tile.coordinates[row + 1]);
      if (!detail::visit_row(tile, place, row, visit)) return false;
    }
    return true;
  }
  return true;
}

} // namespace ptxrewrite::emulator
