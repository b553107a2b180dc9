// Copies with rows and planes, in the driver API's structures.
#pragma once

#include "cuda/context/array.h"
#include "cuda/context/context.h"

namespace ptxrewrite::cuda::driver {

// One side of CUDA_MEMCPY2D.
struct CopySide2D {
  size_t x_bytes, y;
  int kind; // 1 host, 2 device, 3 array, 4 unified
  const void* host;
  uint64_t device;
  const Array* array;
  size_t pitch;
};

struct Memcpy2D {
  CopySide2D from, to;
  size_t width_bytes, height;
};

// One side of CUDA_MEMCPY3D.
struct CopySide3D {
  size_t x_bytes, y, z, level;
  int kind;
  const void* host;
  uint64_t device;
  const Array* array;
  void* reserved;
  size_t pitch, height;
};

struct Memcpy3D {
  CopySide3D from, to;
  size_t width_bytes, height, depth;
};

Action box_copy_action(Context& context, const Memcpy3D& copy);

} // namespace ptxrewrite::cuda::driver
