// Formats of texels as the driver API encodes them.
#pragma once

#include "cuda/context/array.h"

namespace ptxrewrite::cuda::driver {

// CUDA_ARRAY_DESCRIPTOR
struct ArrayDescription2D {
  size_t width, height;
  int format;
  unsigned channels;
};

// `format`: a CUarray_format. Returns all zeros for an unsupported one.
ChannelDescription channels_of(int format, unsigned channels);

} // namespace ptxrewrite::cuda::driver
