// The requirements of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col (CUDA 13.0 driver API), and those of PTX ISA
// 9.7.9.27.1.1 (restrictions on tensor copies) that concern only the map.
#include "ir/isa/tensor_map.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::ir {
namespace {

constexpr uint64_t most_elements = uint64_t(1) << 32; // in one dimension
constexpr uint64_t stride_limit = uint64_t(1) << 40;
constexpr uint32_t most_box = 256;
constexpr uint32_t most_element_stride = 8;
constexpr uint32_t most_channels = 256;
constexpr uint32_t most_pixels = 1024;

struct ElementRow {
  std::string_view name;
  uint8_t bits;
  bool floating;
};
constexpr std::array<ElementRow, tensor_element_count> elements = {{
    {"u8", 8, false},
    {"u16", 16, false},
    {"u32", 32, false},
    {"s32", 32, false},
    {"u64", 64, false},
    {"s64", 64, false},
    {"f16", 16, true},
    {"f32", 32, true},
    {"f32_ftz", 32, true},
    {"f64", 64, true},
    {"bf16", 16, true},
    {"tf32", 32, true},
    {"tf32_ftz", 32, true},
    {"b4x16", 4, false},
    {"b4x16_p64", 4, false},
    {"b6x16_p32", 6, false},
}};

// In the order of CUtensorMapDataType.
constexpr std::array<TensorElement, tensor_element_count> cuda_elements = {
    TensorElement::u8,       TensorElement::u16,   TensorElement::u32,       TensorElement::s32,
    TensorElement::u64,      TensorElement::s64,   TensorElement::f16,       TensorElement::f32,
    TensorElement::f64,      TensorElement::bf16,  TensorElement::f32_ftz,   TensorElement::tf32,
    TensorElement::tf32_ftz, TensorElement::b4x16, TensorElement::b4x16_p64, TensorElement::b6x16_p32,
};

// In the order of CUtensorMapSwizzle.
constexpr std::array<TensorSwizzle, tensor_swizzle_names.size()> cuda_swizzles = {{
    {SwizzleSpan::none, SwizzleAtom::bytes16},
    {SwizzleSpan::bytes32, SwizzleAtom::bytes16},
    {SwizzleSpan::bytes64, SwizzleAtom::bytes16},
    {SwizzleSpan::bytes128, SwizzleAtom::bytes16},
    {SwizzleSpan::bytes128, SwizzleAtom::bytes32},
    {SwizzleSpan::bytes128, SwizzleAtom::bytes32_flip8},
    {SwizzleSpan::bytes128, SwizzleAtom::bytes64},
}};

const ElementRow& row_of(TensorElement element) {
  return elements[static_cast<unsigned>(element)];
}

// Part of a map, for messages; its text is built only when there is a fault to report.
struct Part {
  const char* name = "";
  int index = -1; // -1: no index
  std::string text() const { return index < 0 ? name : std::string(name) + "[" + std::to_string(index) + "]"; }
};
Part part(const char* name, unsigned index) {
  return {name, static_cast<int>(index)};
}

std::string number_fault(Part what, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return {};
  return what.text() + " is " + std::to_string(value) + "; " + std::to_string(low) + " to " + std::to_string(high) +
         " are possible";
}

std::string multiple_fault(Part what, uint64_t value, uint64_t of) {
  if (value % of == 0) return {};
  return what.text() + " is " + std::to_string(value) + ", which is no multiple of " + std::to_string(of);
}

std::string tensor_fault(const TensorMap& map) {
  const bool wide = map.interleave == TensorInterleave::bytes32 || is_padded(map.element);
  const uint64_t alignment = wide ? 32 : 16;
  if (map.address % alignment != 0) return "the tensor's address is no multiple of " + std::to_string(alignment);
  for (unsigned i = 0; i < map.rank; ++i) {
    if (std::string wrong = number_fault(part("dims", i), map.dims[i], 1, most_elements); !wrong.empty()) return wrong;
    if (i == 0) continue;
    const Part what = part("strides", i - 1);
    if (std::string wrong = number_fault(what, map.strides[i], 0, stride_limit - 1); !wrong.empty()) return wrong;
    if (std::string wrong = multiple_fault(what, map.strides[i], alignment); !wrong.empty()) return wrong;
  }
  if (is_padded(map.element)) return multiple_fault({"dims[0]"}, map.dims[0], 128);
  return map.element == TensorElement::b4x16 ? multiple_fault({"dims[0]"}, map.dims[0], 2) : std::string();
}

// `inner`: elements of dimension 0 that are moved. `name`: name of that number in messages.
std::string inner_fault(const TensorMap& map, uint64_t inner, const char* name) {
  if (is_padded(map.element) && inner != 128)
    return std::string(name) + " is " + std::to_string(inner) + "; of this type it has to be 128";
  if (map.interleave != TensorInterleave::none) return {};
  const uint64_t bits = inner * element_bits(map.element);
  if (bits % 128 != 0)
    return std::string(name) + " is " + std::to_string(inner) + " elements, whose bytes are no multiple of 16";
  const uint64_t bytes = is_padded(map.element) ? 128 : bits / 8;
  if (const unsigned span = span_bytes(map.swizzle); span != 0 && bytes > span)
    return std::string(name) + " is " + std::to_string(bytes) + " bytes, more than a swizzle of " +
           std::to_string(span) + " bytes can have";
  return {};
}

std::string swizzle_fault(const TensorMap& map) {
  if (map.swizzle != SwizzleSpan::bytes128 && map.atom != SwizzleAtom::bytes16)
    return "only a swizzle of 128 bytes has larger atoms than 16 bytes";
  if (map.interleave == TensorInterleave::bytes32 && map.swizzle != SwizzleSpan::bytes32)
    return "an interleaved layout of 32 bytes has a swizzle of 32 bytes";
  if (map.interleave != TensorInterleave::none && map.swizzle == SwizzleSpan::bytes96)
    return "a swizzle of 96 bytes has no interleaved layout";
  if (!is_padded(map.element)) return {};
  if (map.swizzle != SwizzleSpan::none && map.swizzle != SwizzleSpan::bytes128)
    return "packed types have no swizzle, or one of 128 bytes";
  if (map.atom == SwizzleAtom::bytes32_flip8) return "packed types have no swizzle that flips 8 bytes";
  return map.interleave == TensorInterleave::none ? std::string() : "packed types have no interleaved layout";
}

std::string im2col_fault(const TensorMap& map) {
  if (std::string wrong = number_fault({"channels_per_pixel"}, map.channels, 1, most_channels); !wrong.empty())
    return wrong;
  if (map.access != TensorAccess::im2col_w128)
    if (std::string wrong = number_fault({"pixels_per_column"}, map.pixels, 1, most_pixels); !wrong.empty())
      return wrong;
  constexpr int32_t limits[] = {1 << 15, 1 << 7, 1 << 4}; // by the number of corners
  const unsigned corners = map.rank - 2;
  for (unsigned i = 0; i < corners; ++i) {
    const int32_t limit = limits[corners - 1];
    for (const auto& [name, value] :
         {std::pair("lower_corner", map.lower_corner[i]), {"upper_corner", map.upper_corner[i]}})
      if (value < -limit || value >= limit)
        return part(name, i).text() + " is " + std::to_string(value) + "; " + std::to_string(-limit) + " to " +
               std::to_string(limit - 1) + " are possible";
    const auto size = static_cast<int64_t>(map.dims[i + 1]);
    if (size + map.upper_corner[i] <= map.lower_corner[i])
      return "there is nothing between lower_corner[" + std::to_string(i) + "] and upper_corner[" + std::to_string(i) +
             "]";
    if (map.access != TensorAccess::im2col) break; // the box has one position along H and D
  }
  return inner_fault(map, map.channels, "channels_per_pixel");
}

} // namespace

unsigned element_bits(TensorElement element) {
  return row_of(element).bits;
}
bool is_padded(TensorElement element) {
  return element == TensorElement::b4x16_p64 || element == TensorElement::b6x16_p32;
}
bool is_float(TensorElement element) {
  return row_of(element).floating;
}
std::string_view spelling(TensorElement element) {
  return row_of(element).name;
}

unsigned span_bytes(SwizzleSpan swizzle) {
  constexpr unsigned bytes[] = {0, 32, 64, 128, 96};
  return bytes[static_cast<unsigned>(swizzle)];
}

std::optional<TensorElement> parse_tensor_element(std::string_view name) {
  const auto row = std::ranges::find(elements, name, &ElementRow::name);
  if (row == elements.end()) return std::nullopt;
  return static_cast<TensorElement>(row - elements.begin());
}

std::optional<TensorElement> tensor_element_of_cuda(int64_t value) {
  if (value < 0 || value >= static_cast<int64_t>(cuda_elements.size())) return std::nullopt;
  return cuda_elements[static_cast<size_t>(value)];
}

std::optional<TensorSwizzle> tensor_swizzle_of_cuda(int64_t value) {
  if (value < 0 || value >= static_cast<int64_t>(cuda_swizzles.size())) return std::nullopt;
  return cuda_swizzles[static_cast<size_t>(value)];
}

std::optional<std::string_view> spelling(TensorSwizzle swizzle) {
  const auto found = std::ranges::find(cuda_swizzles, swizzle);
  if (found == cuda_swizzles.end()) return std::nullopt;
  return tensor_swizzle_names[static_cast<size_t>(found - cuda_swizzles.begin())];
}

std::string find_fault(const TensorMap& map) {
  const bool tiled = map.access == TensorAccess::tiled;
  const bool interleaved = map.interleave != TensorInterleave::none;
  const uint64_t least = !tiled || interleaved ? 3 : 1;
  if (std::string wrong = number_fault({"the rank"}, map.rank, least, most_tensor_dimensions); !wrong.empty())
    return wrong;
  if (std::string wrong = tensor_fault(map); !wrong.empty()) return wrong;
  for (unsigned i = interleaved ? 0 : 1; i < map.rank; ++i) // dimension 0 has a stride only in interleaved layouts
    if (std::string wrong = number_fault(part("element_strides", i), map.element_strides[i], 1, most_element_stride);
        !wrong.empty())
      return wrong;
  if (map.fill == TensorFill::nan && !is_float(map.element))
    return "elements of type " + std::string(spelling(map.element)) + " have no NaN to fill with";
  if (std::string wrong = swizzle_fault(map); !wrong.empty()) return wrong;
  if (!tiled) return im2col_fault(map);
  for (unsigned i = 0; i < map.rank; ++i)
    if (std::string wrong = number_fault(part("box", i), map.box[i], 1, most_box); !wrong.empty()) return wrong;
  return inner_fault(map, map.box[0], "box[0]");
}

} // namespace ptxrewrite::ir
