// Writes tensor maps as launch files spell them.
#include "launch/tensor_map_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

namespace ptxrewrite::launch {

std::optional<std::string> tensor_map_text(const ir::TensorMap& map, std::string_view buffer, uint64_t offset) {
  const std::optional<std::string_view> swizzle = ir::spelling(ir::TensorSwizzle{map.swizzle, map.atom});
  if (!swizzle) return std::nullopt;
  const auto list = [&](const auto& numbers, size_t first, size_t end) {
    return fmt::format("[{}]", fmt::join(std::span(numbers).subspan(first, end - first), ", "));
  };
  std::string text = fmt::format("{{ tensor_map = {{ buffer = {}, type = \"{}\", dims = {}", buffer,
                                 ir::spelling(map.element), list(map.dims, 0, map.rank));
  if (offset != 0) text += fmt::format(", offset = {}", offset);
  if (map.rank > 1) text += ", strides = " + list(map.strides, 1, map.rank);
  text += ", element_strides = " + list(map.element_strides, 0, map.rank);
  if (map.access == ir::TensorAccess::tiled)
    text += ", box = " + list(map.box, 0, map.rank);
  else
    text += fmt::format(
        ", mode = \"{}\", lower_corner = {}, upper_corner = {}, channels_per_pixel = {}, pixels_per_column = {}",
        tensor_mode_names[static_cast<size_t>(map.access)], list(map.lower_corner, 0, map.rank - 2),
        list(map.upper_corner, 0, map.rank - 2), map.channels, map.pixels);
  text += fmt::format(", swizzle = \"{}\"", *swizzle);
  if (map.interleave != ir::TensorInterleave::none)
    text += fmt::format(", interleave = \"{}\"", tensor_interleave_names[static_cast<size_t>(map.interleave)]);
  if (map.l2_promotion != 0) text += fmt::format(", l2 = \"{}\"", tensor_l2_names[map.l2_promotion]);
  if (map.fill != ir::TensorFill::zeros)
    text += fmt::format(", fill = \"{}\"", tensor_fill_names[static_cast<size_t>(map.fill)]);
  return text + " } }";
}

} // namespace ptxrewrite::launch
