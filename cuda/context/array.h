// CUDA arrays: texels without gaps in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ptxrewrite::cuda {

// cudaChannelFormatDesc: the bits of each channel, and the kind of its values.
struct ChannelDescription {
  int x, y, z, w;
  int kind; // 0 signed, 1 unsigned, 2 float
};

struct Array {
  ChannelDescription channels{};
  uint64_t width = 0, height = 0, depth = 0; // in texels; 0 if the array lacks the dimension
  unsigned flags = 0;                        // 1: layered, 2: surfaces, 4: cube map
  uint64_t address = 0;
  bool is_level = false; // belongs to a mipmapped array

  unsigned texel_bytes() const { return static_cast<unsigned>(channels.x + channels.y + channels.z + channels.w) / 8; }
  uint64_t row_bytes() const { return width * texel_bytes(); }
  uint64_t rows() const { return height ? height : 1; }
  uint64_t planes() const { return depth ? depth : 1; }
  uint64_t bytes() const { return row_bytes() * rows() * planes(); }
};

// All levels are in one allocation, in order.
struct MipmappedArray {
  std::vector<std::unique_ptr<Array>> levels;
};

} // namespace ptxrewrite::cuda
