// Tensor maps that programs ask for (CUDA driver API, "Tensor Map Object Management").
#pragma once

#include "cuda/context/codes.h"

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::cuda {

enum class TensorMapKind : uint8_t { tiled, im2col, im2col_w, im2col_w128 };

// Numbers as programs pass them, of CUDA's enumerations too. Arrays have `rank` members, strides and corners one and
// two less; those of the other kind of map may be null.
struct TensorMapRequest {
  TensorMapKind kind = TensorMapKind::tiled;
  int element = 0; // CUtensorMapDataType
  uint32_t rank = 0;
  uint64_t address = 0;
  const uint64_t* dims = nullptr;
  const uint64_t* strides = nullptr;
  const uint32_t* box = nullptr;
  const uint32_t* element_strides = nullptr;
  const int* lower_corner = nullptr; // in the order W, H, D
  const int* upper_corner = nullptr;
  uint32_t channels = 0, pixels = 0;
  int interleave = 0, swizzle = 0, l2_promotion = 0, fill = 0; // CUtensorMapInterleave and so on
};

// Writes the 128 bytes of the map. invalid_value: a requirement is not fulfilled, and the log says which.
Code encode_tensor_map(const TensorMapRequest& request, void* map);
// The same tensor at another address.
Code replace_tensor_map_address(void* map, uint64_t address);

} // namespace ptxrewrite::cuda
