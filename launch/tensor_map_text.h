// Tensor maps as launch files spell them.
#pragma once

#include "ir/isa/tensor_map.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::launch {

// In the order of the enumerations of ir/isa/tensor_map.h.
inline constexpr std::array<std::string_view, 3> tensor_interleave_names = {"none", "16B", "32B"};
inline constexpr std::array<std::string_view, 4> tensor_l2_names = {"none", "64B", "128B", "256B"};
inline constexpr std::array<std::string_view, 2> tensor_fill_names = {"zeros", "nan"};
inline constexpr std::array<std::string_view, 4> tensor_mode_names = {"tiled", "im2col", "im2col_w", "im2col_w128"};

// { tensor_map = { ... } } for a legal map of a tensor `offset` elements behind the start of a buffer, as
// plan_tensor_maps.cpp reads it. `buffer`: quoted. nullopt: launch files have no such map.
std::optional<std::string> tensor_map_text(const ir::TensorMap& map, std::string_view buffer, uint64_t offset);

} // namespace ptxrewrite::launch
