// Tensor maps that programs create (CUDA driver API, "Tensor Map Object Management").
#pragma once

#include "cuda/context/codes.h"

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::cuda {

enum class TensorMapKind : uint8_t { tiled, im2col, im2col_w, im2col_w128 };

// Parameters as programs pass them, with the numbers of CUDA's enumerations. Arrays have `rank` elements, strides one
// less and corners two less; the arrays for the other kind of map may be null.
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

// Writes the 128 bytes of the map. Returns invalid_value if a requirement is violated; the log says which.
Code encode_tensor_map(const TensorMapRequest& request, void* map);
// Changes the tensor's address in the map.
Code replace_tensor_map_address(void* map, uint64_t address);

} // namespace ptxrewrite::cuda
