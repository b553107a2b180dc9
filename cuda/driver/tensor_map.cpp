#include "cuda/driver/tensor_map.h"

#include <cstring>
#include <optional>

namespace ptxrewrite::driver {
namespace {

// The number that CUDA gives an element type or a swizzle: the inverse of `of_cuda`.
template <class Value, class Lookup> std::optional<int> cuda_number(const Value& value, Lookup of_cuda) {
  for (int number = 0; const auto found = of_cuda(number); ++number)
    if (*found == value) return number;
  return std::nullopt;
}

} // namespace

Result<std::array<std::byte, ir::tensor_map_bytes>> encode_tensor_map(const Library& driver, const ir::TensorMap& map) {
  if (!driver.encode_tiled || !driver.encode_im2col)
    return Error{"tensor maps need cuTensorMapEncodeTiled, which this driver lacks", {}};
  const std::optional<int> element = cuda_number(map.element, ir::tensor_element_of_cuda);
  const std::optional<int> swizzle = cuda_number(std::pair(map.swizzle, map.atom), [](int number) {
    const std::optional<ir::TensorSwizzle> found = ir::tensor_swizzle_of_cuda(number);
    return found ? std::optional(std::pair(found->span, found->atom)) : std::nullopt;
  });
  const bool is_tiled = map.access == ir::TensorAccess::tiled;
  if (!element || !swizzle || (!is_tiled && map.access != ir::TensorAccess::im2col))
    return Error{"the driver has no tensor maps of this kind", {}};
  alignas(ir::tensor_map_alignment) std::array<std::byte, ir::tensor_map_bytes> bytes{};
  void* address =
      reinterpret_cast<void*>(uintptr_t(map.address)); // NOLINT(performance-no-int-to-ptr): the driver's type
  const auto interleave = static_cast<int>(map.interleave), fill = static_cast<int>(map.fill);
  const uint64_t* strides = map.strides.data() + 1; // none of dimension 0
  const ResultCode status =
      is_tiled
          ? driver.encode_tiled(bytes.data(), *element, map.rank, address, map.dims.data(), strides, map.box.data(),
                                map.element_strides.data(), interleave, *swizzle, map.l2_promotion, fill)
          : driver.encode_im2col(bytes.data(), *element, map.rank, address, map.dims.data(), strides,
                                 map.lower_corner.data(), map.upper_corner.data(), map.channels, map.pixels,
                                 map.element_strides.data(), interleave, *swizzle, map.l2_promotion, fill);
  if (status != success) return driver.error(is_tiled ? "cuTensorMapEncodeTiled" : "cuTensorMapEncodeIm2col", status);
  return bytes;
}

} // namespace ptxrewrite::driver
