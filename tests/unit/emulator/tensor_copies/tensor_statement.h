// A second implementation of tensor copies, element by element: from the coordinates of each element of the box to its
// address in global memory and, by CuTe's layout algebra (a dense column-major layout followed by Swizzle<B, M, S>),
// its address in shared memory. For tests; shares only the description of a map with the emulator.
#pragma once

#include "ir/isa/tensor_map.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

namespace ptxrewrite::emulator::tensor_statement {

// CuTe's Swizzle<B, M, S>: B bits from bit M + S up are exclusive-ored with the B bits from bit M up.
inline uint32_t swizzle(uint32_t address, unsigned b, unsigned m, unsigned s) {
  const uint32_t mask = ((1u << b) - 1) << (m + s);
  return address ^ (address & mask) >> s;
}

// `cuda_swizzle` is a value of the CUDA enumeration CU_TENSOR_MAP_SWIZZLE_*.
inline uint32_t shared_address(int cuda_swizzle, uint32_t address) {
  switch (cuda_swizzle) {
  case 1:
    return swizzle(address, 1, 4, 3);
  case 2:
    return swizzle(address, 2, 4, 3);
  case 3:
    return swizzle(address, 3, 4, 3);
  case 4:
    return swizzle(address, 2, 5, 2);
  case 5: // and in odd lines of 128 bytes neighbouring groups of 8 bytes are exchanged
    return swizzle(swizzle(address, 2, 5, 2), 1, 3, 4);
  case 6:
    return swizzle(address, 1, 6, 1);
  default:
    return address;
  }
}

struct Place {
  std::optional<uint64_t> global; // nullopt: the element is outside of the tensor
  uint32_t dense = 0;             // bytes from the start of the box, without a swizzle
};

inline uint32_t element_bytes(const ir::TensorMap& map) {
  return ir::element_bits(map.element) / 8;
}

// Calls visit(Place) for all elements of a tiled box that starts at `start`.
inline void tiled(const ir::TensorMap& map, const std::vector<int64_t>& start,
                  const std::function<void(const Place&)>& visit) {
  std::vector<uint32_t> counts(map.rank);
  uint64_t total = 1;
  for (unsigned i = 0; i < map.rank; ++i) {
    const uint32_t step = i == 0 ? 1 : map.element_strides[i];
    counts[i] = 0;
    for (uint32_t at = 0; at < map.box[i]; at += step)
      ++counts[i];
    total *= counts[i];
  }
  for (uint64_t number = 0; number < total; ++number) {
    uint64_t rest = number, address = map.address;
    bool inside = true;
    for (unsigned i = 0; i < map.rank; ++i) {
      const int64_t step = i == 0 ? 1 : map.element_strides[i];
      const int64_t coordinate = start[i] + static_cast<int64_t>(rest % counts[i]) * step;
      rest /= counts[i];
      inside = inside && coordinate >= 0 && static_cast<uint64_t>(coordinate) < map.dims[i];
      address += static_cast<uint64_t>(coordinate) * (i == 0 ? element_bytes(map) : map.strides[i]);
    }
    visit({inside ? std::optional(address) : std::nullopt, static_cast<uint32_t>(number * element_bytes(map))});
  }
}

// The pixels of im2col, in the order of a convolution's loops: images, then H, then W, each from corner to corner by
// the traversal stride; the copy starts at one point of these loops. (3D: no H.) `offsets` in the order W, H, D.
inline void column(const ir::TensorMap& map, const std::vector<int64_t>& start, const std::vector<int64_t>& offsets,
                   const std::function<void(const Place&)>& visit) {
  const unsigned spatial = map.rank - 2;
  struct Range {
    int64_t first, last, step;
  };
  std::vector<Range> ranges;
  for (unsigned i = 0; i < spatial; ++i)
    ranges.push_back({map.lower_corner[i], static_cast<int64_t>(map.dims[i + 1]) - 1 + map.upper_corner[i],
                      map.element_strides[i + 1]});
  uint32_t pixel = 0;
  std::vector<int64_t> at(spatial);
  const auto emit = [&](int64_t image) {
    for (uint32_t channel = 0; channel < map.channels && pixel < map.pixels; ++channel) {
      const int64_t c = start[0] + channel;
      bool inside = c >= 0 && static_cast<uint64_t>(c) < map.dims[0] && image >= 0 &&
                    static_cast<uint64_t>(image) < map.dims[map.rank - 1];
      uint64_t address = map.address + static_cast<uint64_t>(c) * element_bytes(map) +
                         static_cast<uint64_t>(image) * map.strides[map.rank - 1];
      for (unsigned i = 0; i < spatial; ++i) {
        const int64_t place = at[i] + offsets[i];
        inside = inside && place >= 0 && static_cast<uint64_t>(place) < map.dims[i + 1];
        address += static_cast<uint64_t>(place) * map.strides[i + 1];
      }
      visit({inside ? std::optional(address) : std::nullopt, (pixel * map.channels + channel) * element_bytes(map)});
    }
    ++pixel;
  };
  // `begun`: the outer loops have passed the start of the copy.
  std::function<void(unsigned, bool, int64_t)> loop = [&](unsigned dimension, bool begun, int64_t image) {
    const Range& range = ranges[dimension];
    const int64_t first = begun ? range.first : start[dimension + 1];
    for (int64_t place = first; place <= range.last && pixel < map.pixels; place += range.step) {
      at[dimension] = place;
      const bool inner_begun = begun || place != first;
      if (dimension == 0)
        emit(image);
      else
        loop(dimension - 1, inner_begun, image);
    }
  };
  for (int64_t image = start[map.rank - 1]; pixel < map.pixels; ++image)
    loop(spatial - 1, image != start[map.rank - 1], image);
}

// A tile in shared memory at `start`, before and after a load. `value`: bytes of an element in global memory.
template <class Walk>
void load(const ir::TensorMap& map, int cuda_swizzle, uint32_t start, const std::byte* tensor,
          std::vector<std::byte>& shared, Walk&& walk) {
  const uint32_t size = element_bytes(map);
  walk([&](const Place& place) {
    for (uint32_t i = 0; i < size; ++i) { // an element is not split, but the comparison is by bytes
      const uint32_t at = shared_address(cuda_swizzle, start + place.dense + i);
      const bool odd = (place.dense + i) % 2 != 0;
      const std::byte outside =
          map.fill == ir::TensorFill::nan ? (odd ? std::byte(0x7f) : std::byte(0xf7)) : std::byte(0);
      shared[at] = place.global ? tensor[*place.global - map.address + i] : outside;
    }
  });
}

template <class Walk>
void store(const ir::TensorMap& map, int cuda_swizzle, uint32_t start, std::byte* tensor,
           const std::vector<std::byte>& shared, Walk&& walk) {
  const uint32_t size = element_bytes(map);
  walk([&](const Place& place) {
    for (uint32_t i = 0; place.global && i < size; ++i)
      tensor[*place.global - map.address + i] = shared[shared_address(cuda_swizzle, start + place.dense + i)];
  });
}

} // namespace ptxrewrite::emulator::tensor_statement
