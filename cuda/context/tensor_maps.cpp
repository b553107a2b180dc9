#include "cuda/context/tensor_maps.h"

#include "cuda/context/log.h"
#include "emulator/tensor_copies/tensor_map_object.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::cuda {
namespace {

Code refuse(const std::string& why) {
  log(LogLevel::warn, "a tensor map cannot be made: {}", why);
  return Code::invalid_value;
}

bool is_aligned(const void* map) {
  return map && reinterpret_cast<uintptr_t>(map) % ir::tensor_map_alignment == 0;
}

Code finish_map(const ir::TensorMap& map, void* place) {
  if (std::string wrong = ir::find_fault(map); !wrong.empty()) return refuse(wrong);
  const emulator::TensorMapObject bytes = emulator::encode_tensor_map(map);
  std::memcpy(place, bytes.data(), bytes.size());
  return Code::success;
}

// Converts the enumerations. Returns false for an unknown value.
bool read_kinds(const TensorMapRequest& request, ir::TensorMap& map) {
  const auto element = ir::tensor_element_of_cuda(request.element);
  const auto swizzle = ir::tensor_swizzle_of_cuda(request.swizzle);
  const auto below = [](int value, int count) { return value >= 0 && value < count; };
  if (!element || !swizzle || !below(request.interleave, 3) || !below(request.l2_promotion, 4) ||
      !below(request.fill, 2))
    return false;
  map.access = static_cast<ir::TensorAccess>(request.kind);
  map.element = *element;
  map.swizzle = swizzle->span;
  map.atom = swizzle->atom;
  map.interleave = static_cast<ir::TensorInterleave>(request.interleave);
  map.l2_promotion = static_cast<uint8_t>(request.l2_promotion);
  map.fill = static_cast<ir::TensorFill>(request.fill);
  return true;
}

} // namespace

Code encode_tensor_map(const TensorMapRequest& request, void* place) {
  ir::TensorMap map;
  if (!is_aligned(place)) return refuse("its address is null or no multiple of 64");
  if (request.rank == 0 || request.rank > ir::most_tensor_dimensions) return refuse("its rank is not 1 to 5");
  if (!read_kinds(request, map)) return refuse("an enumeration's value does not exist");
  const bool tiled = request.kind == TensorMapKind::tiled;
  if (!request.dims || (!request.strides && request.rank > 1) || !request.element_strides ||
      (tiled ? !request.box : !request.lower_corner || !request.upper_corner))
    return refuse("an array is missing");
  if (!tiled && request.rank < 3) return refuse("an im2col map has 3 to 5 dimensions");
  map.rank = request.rank;
  map.address = request.address;
  std::copy_n(request.dims, map.rank, map.dims.begin());
  if (map.rank > 1) std::copy_n(request.strides, map.rank - 1, map.strides.begin() + 1);
  std::copy_n(request.element_strides, map.rank, map.element_strides.begin());
  if (tiled) {
    std::copy_n(request.box, map.rank, map.box.begin());
    return finish_map(map, place);
  }
  const bool wide = request.kind != TensorMapKind::im2col; // corners only along W
  std::copy_n(request.lower_corner, wide ? 1 : map.rank - 2, map.lower_corner.begin());
  std::copy_n(request.upper_corner, wide ? 1 : map.rank - 2, map.upper_corner.begin());
  map.channels = request.channels;
  map.pixels = request.pixels;
  return finish_map(map, place);
}

Code replace_tensor_map_address(void* place, uint64_t address) {
  if (!is_aligned(place)) return refuse("its address is null or no multiple of 64");
  emulator::TensorMapObject bytes;
  std::memcpy(bytes.data(), place, bytes.size());
  ir::TensorMap map;
  if (std::string wrong = emulator::read_tensor_map(bytes, map); !wrong.empty()) return refuse(wrong);
  map.address = address;
  return finish_map(map, place);
}

} // namespace ptxrewrite::cuda
