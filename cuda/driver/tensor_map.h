// Tensor maps in the encoding of a GPU's driver.
#pragma once

#include "cuda/driver/library.h"
#include "ir/isa/tensor_map.h"

#include <array>
#include <cstddef>

namespace ptxrewrite::driver {

// The 128 bytes of a map (CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col). Fails if the driver
// lacks these entry points or refuses the map, and for modes that only machines without such a driver have (im2col_w).
Result<std::array<std::byte, ir::tensor_map_bytes>> encode_tensor_map(const Library& driver, const ir::TensorMap& map);

} // namespace ptxrewrite::driver
