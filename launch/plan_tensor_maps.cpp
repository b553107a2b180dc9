// Kernel parameters that are tensor maps:
//   { tensor_map = { buffer = "a", dims = ["k", "m"], box = [64, 128], swizzle = "128B" } }
#include "launch/plan_builder.h"
#include "launch/tensor_map_text.h"
#include "support/text/near_names.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::launch {

namespace {

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {
      "buffer",  "offset", "type", "dims", "strides",      "box",          "element_strides",    "interleave",
      "swizzle", "l2",     "fill", "mode", "lower_corner", "upper_corner", "channels_per_pixel", "pixels_per_column"};
  return keys;
}

// The default element type of a map for a buffer's type.
std::optional<ir::TensorElement> element_of(ir::ScalarType type) {
  using enum ir::ScalarType;
  switch (type) {
  case u8:
  case s8:
  case b8:
    return ir::TensorElement::u8;
  case u16:
  case s16:
  case b16:
    return ir::TensorElement::u16;
  case u32:
  case b32:
    return ir::TensorElement::u32;
  case s32:
    return ir::TensorElement::s32;
  case u64:
  case b64:
    return ir::TensorElement::u64;
  case s64:
    return ir::TensorElement::s64;
  case f16:
    return ir::TensorElement::f16;
  case bf16:
    return ir::TensorElement::bf16;
  case f32:
    return ir::TensorElement::f32;
  case f64:
    return ir::TensorElement::f64;
  default:
    return std::nullopt;
  }
}

} // namespace

template <class T>
std::optional<size_t> PlanBuilder::read_integers(const Node& node, const std::string& what, std::span<T> out,
                                                 std::optional<size_t> count, Int128 low, Int128 high) {
  const size_t items = node.is(NodeKind::array) ? node.items.size() : 0;
  if (items > out.size() || (count ? items != *count : items == 0)) {
    scope_.error(node.range, what + ": expected an array of " +
                                 (count ? std::to_string(*count) : "1 to " + std::to_string(out.size())) + " integers");
    return std::nullopt;
  }
  for (size_t i = 0; i < items; ++i) {
    auto value = scope_.integer(node.items[i], what + "[" + std::to_string(i) + "]", low, high);
    if (!value) return std::nullopt;
    out[i] = static_cast<T>(*value);
  }
  return items;
}

bool PlanBuilder::check_tensor_map_keys(const Node& table, const std::string& what) {
  if (!table.is(NodeKind::table)) {
    scope_.error(table.range, what + ": expected a table like { buffer = \"a\", dims = [64, 64], box = [32, 8] }");
    return false;
  }
  for (const Member& member : table.members)
    if (std::ranges::find(known_keys(), member.key) == known_keys().end()) {
      scope_.error(member.key_range,
                   what + ": a tensor map has no key '" + member.key + "'" + near_names(member.key, known_keys()));
      return false;
    }
  for (const char* key : {"buffer", "dims"})
    if (!table.find(key)) {
      scope_.error(table.range, what + ": a tensor map needs " + key);
      return false;
    }
  return true;
}

// The tensor: its buffer, elements and dimensions.
bool PlanBuilder::read_tensor(const Node& table, const std::string& what, PlannedTensorMap& planned) {
  ir::TensorMap& map = planned.map;
  const std::optional<uint32_t> buffer = buffer_index(*table.find("buffer"), what + ".buffer");
  if (!buffer) return false;
  planned.buffer = *buffer;
  const Buffer& data = plan_.buffers[*buffer];
  if (const Node* offset = table.find("offset"); offset && data.count > 0) {
    auto elements = scope_.integer(*offset, what + ".offset", 0, Int128(data.count));
    if (!elements) return false;
    map.address = static_cast<uint64_t>(*elements) * data.element_bytes();
  }
  std::optional<ir::TensorElement> element = element_of(data.type);
  if (const Node* type = table.find("type")) {
    const std::optional<std::string> name = text_of(*type, what + ".type");
    if (!name) return false;
    element = ir::parse_tensor_element(*name);
    if (!element) {
      scope_.error(type->range, what + ".type: tensors have no elements of type '" + *name + "'");
      return false;
    }
  } else if (!element) {
    scope_.error(table.range, what + ": tensors have no elements of the buffer's type; type says which they have");
    return false;
  }
  map.element = *element;
  const auto rank = read_integers(*table.find("dims"), what + ".dims", std::span<uint64_t>(map.dims), std::nullopt, 1,
                                  Int128(1) << 32);
  if (!rank) return false;
  map.rank = static_cast<uint32_t>(*rank);
  return read_strides(table, what, map);
}

// In bytes; without strides the tensor is dense.
bool PlanBuilder::read_strides(const Node& table, const std::string& what, ir::TensorMap& map) {
  if (const Node* strides = table.find("strides"))
    return read_integers(*strides, what + ".strides", std::span<uint64_t>(map.strides).subspan(1), map.rank - 1, 0,
                         (Int128(1) << 40) - 1)
        .has_value();
  UInt128 stride = UInt128(map.dims[0]) * ir::element_bits(map.element) / 8;
  for (unsigned i = 1; i < map.rank; ++i) {
    if (stride >= UInt128(1) << 40) {
      scope_.error(table.range, what + ": the stride of dimension " + std::to_string(i) + " is 2^40 or more");
      return false;
    }
    map.strides[i] = static_cast<uint64_t>(stride);
    stride *= map.dims[i];
  }
  return true;
}

// The part that one copy moves.
bool PlanBuilder::read_tile(const Node& table, const std::string& what, ir::TensorMap& map) {
  map.access = static_cast<ir::TensorAccess>(choice_of(table, "mode", what, tensor_mode_names));
  map.element_strides.fill(1);
  if (const Node* strides = table.find("element_strides"))
    if (!read_integers(*strides, what + ".element_strides", std::span<uint32_t>(map.element_strides), map.rank, 1, 8))
      return false;
  const bool tiled = map.access == ir::TensorAccess::tiled;
  for (const char* key : {"lower_corner", "upper_corner", "channels_per_pixel", "pixels_per_column", "box"}) {
    const bool of_tiled = std::string_view(key) == "box";
    const Node* found = table.find(key);
    if (found && of_tiled != tiled) {
      scope_.error(found->range,
                   what + "." + key + ": not of a map with mode = \"" + (tiled ? "tiled" : "im2col") + "\"");
      return false;
    }
    if (!found && of_tiled == tiled) {
      scope_.error(table.range, what + ": a tensor map of this mode needs " + key);
      return false;
    }
  }
  if (tiled)
    return read_integers(*table.find("box"), what + ".box", std::span<uint32_t>(map.box), map.rank, 1, 256).has_value();
  if (map.rank < 3) {
    scope_.error(table.range, what + ": an im2col map has 3 to 5 dimensions");
    return false;
  }
  const size_t corners = map.rank - 2;
  const auto channels = scope_.integer(*table.find("channels_per_pixel"), what + ".channels_per_pixel", 1, 256);
  const auto pixels = scope_.integer(*table.find("pixels_per_column"), what + ".pixels_per_column", 1, 1024);
  if (!channels || !pixels) return false;
  map.channels = static_cast<uint32_t>(*channels);
  map.pixels = static_cast<uint32_t>(*pixels);
  return read_integers(*table.find("lower_corner"), what + ".lower_corner", std::span<int32_t>(map.lower_corner),
                       corners, -32768, 32767) &&
         read_integers(*table.find("upper_corner"), what + ".upper_corner", std::span<int32_t>(map.upper_corner),
                       corners, -32768, 32767);
}

// The layout in shared memory, and the fill value outside of the tensor.
bool PlanBuilder::read_layout(const Node& table, const std::string& what, ir::TensorMap& map) {
  map.interleave = static_cast<ir::TensorInterleave>(choice_of(table, "interleave", what, tensor_interleave_names));
  const size_t swizzle = choice_of(table, "swizzle", what, ir::tensor_swizzle_names);
  const ir::TensorSwizzle found = *ir::tensor_swizzle_of_cuda(static_cast<int64_t>(swizzle));
  map.swizzle = found.span;
  map.atom = found.atom;
  map.l2_promotion = static_cast<uint8_t>(choice_of(table, "l2", what, tensor_l2_names));
  map.fill = static_cast<ir::TensorFill>(choice_of(table, "fill", what, tensor_fill_names));
  return true;
}

std::optional<Argument> PlanBuilder::read_tensor_map_argument(const Node& node, const std::string& argument_name) {
  const std::string what = argument_name + ".tensor_map";
  PlannedTensorMap planned;
  planned.range = node.range;
  if (!check_tensor_map_keys(node, what) || !read_tensor(node, what, planned) || !read_tile(node, what, planned.map) ||
      !read_layout(node, what, planned.map))
    return std::nullopt;
  // Buffers are aligned more strictly than tensors, so checking the offset's alignment suffices.
  if (std::string wrong = ir::find_fault(planned.map); !wrong.empty()) {
    scope_.error(node.range, what + ": " + wrong);
    return std::nullopt;
  }
  Argument argument;
  argument.kind = Argument::Kind::tensor_map;
  argument.index = static_cast<uint32_t>(plan_.tensor_maps.size());
  plan_.tensor_maps.push_back(planned);
  return argument;
}

} // namespace ptxrewrite::launch
