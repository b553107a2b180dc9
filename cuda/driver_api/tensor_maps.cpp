// cuTensorMapEncode*: tensor maps for the tensor copies of kernels.
#include "cuda/context/tensor_maps.h"
#include "cuda/driver_api/entry.h"

namespace ptxrewrite::cuda::driver {

DRIVER_API int cuTensorMapEncodeTiled(void* map, int element, uint32_t rank, void* address, const uint64_t* dims,
                                      const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                                      int interleave, int swizzle, int l2_promotion, int fill) {
  return entry("cuTensorMapEncodeTiled", [&](Context&) {
    TensorMapRequest request;
    request.element = element;
    request.rank = rank;
    request.address = reinterpret_cast<uintptr_t>(address);
    request.dims = dims;
    request.strides = strides;
    request.box = box;
    request.element_strides = element_strides;
    request.interleave = interleave;
    request.swizzle = swizzle;
    request.l2_promotion = l2_promotion;
    request.fill = fill;
    return encode_tensor_map(request, map);
  });
}

DRIVER_API int cuTensorMapEncodeIm2col(void* map, int element, uint32_t rank, void* address, const uint64_t* dims,
                                       const uint64_t* strides, const int* lower_corner, const int* upper_corner,
                                       uint32_t channels, uint32_t pixels, const uint32_t* element_strides,
                                       int interleave, int swizzle, int l2_promotion, int fill) {
  return entry("cuTensorMapEncodeIm2col", [&](Context&) {
    TensorMapRequest request;
    request.kind = TensorMapKind::im2col;
    request.element = element;
    request.rank = rank;
    request.address = reinterpret_cast<uintptr_t>(address);
    request.dims = dims;
    request.strides = strides;
    request.lower_corner = lower_corner;
    request.upper_corner = upper_corner;
    request.channels = channels;
    request.pixels = pixels;
    request.element_strides = element_strides;
    request.interleave = interleave;
    request.swizzle = swizzle;
    request.l2_promotion = l2_promotion;
    request.fill = fill;
    return encode_tensor_map(request, map);
  });
}

DRIVER_API int cuTensorMapEncodeIm2colWide(void* map, int element, uint32_t rank, void* address, const uint64_t* dims,
                                           const uint64_t* strides, int lower_corner, int upper_corner,
                                           uint32_t channels, uint32_t pixels, const uint32_t* element_strides,
                                           int interleave, int mode, int swizzle, int l2_promotion, int fill) {
  return entry("cuTensorMapEncodeIm2colWide", [&](Context&) {
    if (mode != 0 && mode != 1) return Code::invalid_value;
    TensorMapRequest request;
    request.kind = mode == 0 ? TensorMapKind::im2col_w : TensorMapKind::im2col_w128;
    request.element = element;
    request.rank = rank;
    request.address = reinterpret_cast<uintptr_t>(address);
    request.dims = dims;
    request.strides = strides;
    request.lower_corner = &lower_corner;
    request.upper_corner = &upper_corner;
    request.channels = channels;
    request.pixels = pixels;
    request.element_strides = element_strides;
    request.interleave = interleave;
    request.swizzle = swizzle;
    request.l2_promotion = l2_promotion;
    request.fill = fill;
    return encode_tensor_map(request, map);
  });
}

DRIVER_API int cuTensorMapReplaceAddress(void* map, void* address) {
  return entry("cuTensorMapReplaceAddress",
               [&](Context&) { return replace_tensor_map_address(map, reinterpret_cast<uintptr_t>(address)); });
}

} // namespace ptxrewrite::cuda::driver
