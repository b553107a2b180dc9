#include "emulator/tensor_copies/tensor_map_object.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

using Words = std::array<uint64_t, ir::tensor_map_bytes / 8>;

constexpr uint64_t mark = 0x54656e73; // in the high half of word 0

// Bits [first, first + width) of a word; values that do not fit are stored as the largest one that does.
struct Field {
  unsigned word = 0, first = 0, width = 0;
  uint64_t largest() const { return width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1; }
  uint64_t get(const Words& words) const { return words[word] >> first & largest(); }
  void set(Words& words, uint64_t value) const { words[word] |= std::min(value, largest()) << first; }
  // Two's complement.
  int32_t get_signed(const Words& words) const {
    return static_cast<int32_t>(static_cast<uint32_t>(get(words)) << (32 - width)) >> (32 - width);
  }
  void set_signed(Words& words, int32_t value) const {
    const int32_t limit = 1 << (width - 1);
    words[word] |= (static_cast<uint64_t>(std::clamp(value, -limit, limit - 1)) & largest()) << first;
  }
};

constexpr Field marks{0, 32, 32};
constexpr Field access{0, 0, 2}, element{0, 2, 5}, interleave{0, 7, 2}, swizzle{0, 9, 3}, atom{0, 12, 2},
    fill{0, 14, 1}, l2_promotion{0, 15, 2}, rank_less_one{0, 17, 3};
// Bit 21 of word 1 has no meaning: CUTLASS and Triton clear it in maps of tensors below 128 KiB, for the driver.
constexpr Field channels{1, 0, 16}, pixels{1, 32, 16};
constexpr Field dimension(unsigned i) {
  return {2 + i, 0, 64};
}
constexpr Field stride(unsigned i) { // of dimension i, which starts at 1
  return {6 + i, 0, 64};
}
constexpr Field box(unsigned i) {
  return {11 + i / 4, i % 4 * 16, 16};
}
constexpr Field element_stride(unsigned i) {
  return {12, 16 + i * 8, 8};
}
constexpr Field lower_corner(unsigned i) {
  return {13, i * 16, 16};
}
constexpr Field upper_corner(unsigned i) {
  return {14, i * 16, 16};
}
constexpr Field address{15, 0, 64};

} // namespace

TensorMapObject encode_tensor_map(const ir::TensorMap& map) {
  Words words{};
  marks.set(words, mark);
  access.set(words, static_cast<uint64_t>(map.access));
  element.set(words, static_cast<uint64_t>(map.element));
  interleave.set(words, static_cast<uint64_t>(map.interleave));
  swizzle.set(words, static_cast<uint64_t>(map.swizzle));
  atom.set(words, static_cast<uint64_t>(map.atom));
  fill.set(words, static_cast<uint64_t>(map.fill));
  l2_promotion.set(words, map.l2_promotion);
  rank_less_one.set(words, map.rank - 1);
  address.set(words, map.address);
  for (unsigned i = 0; i < ir::most_tensor_dimensions; ++i) {
    dimension(i).set(words, map.dims[i]);
    if (i > 0) stride(i).set(words, map.strides[i]);
    box(i).set(words, map.box[i]);
    element_stride(i).set(words, map.element_strides[i]);
  }
  for (unsigned i = 0; i < map.lower_corner.size(); ++i) {
    lower_corner(i).set_signed(words, map.lower_corner[i]);
    upper_corner(i).set_signed(words, map.upper_corner[i]);
  }
  channels.set(words, map.channels);
  pixels.set(words, map.pixels);
  TensorMapObject bytes;
  std::memcpy(bytes.data(), words.data(), sizeof words);
  return bytes;
}

std::string read_tensor_map(std::span<const std::byte, ir::tensor_map_bytes> bytes, ir::TensorMap& map) {
  Words words;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  if (marks.get(words) != mark && std::ranges::any_of(words, [](uint64_t word) { return word != 0; }))
    return "its bytes are no tensor map";
  if (element.get(words) >= ir::tensor_element_count) return "its element type does not exist";
  if (interleave.get(words) > static_cast<uint64_t>(ir::TensorInterleave::bytes32))
    return "its interleaved layout does not exist";
  if (swizzle.get(words) > static_cast<uint64_t>(ir::SwizzleSpan::bytes96)) return "its swizzle does not exist";
  map.access = static_cast<ir::TensorAccess>(access.get(words));
  map.element = static_cast<ir::TensorElement>(element.get(words));
  map.interleave = static_cast<ir::TensorInterleave>(interleave.get(words));
  map.swizzle = static_cast<ir::SwizzleSpan>(swizzle.get(words));
  map.atom = static_cast<ir::SwizzleAtom>(atom.get(words));
  map.fill = static_cast<ir::TensorFill>(fill.get(words));
  map.l2_promotion = static_cast<uint8_t>(l2_promotion.get(words));
  map.rank = static_cast<uint32_t>(rank_less_one.get(words)) + 1;
  map.address = address.get(words);
  for (unsigned i = 0; i < ir::most_tensor_dimensions; ++i) {
    map.dims[i] = dimension(i).get(words);
    map.strides[i] = i > 0 ? stride(i).get(words) : 0;
    map.box[i] = static_cast<uint32_t>(box(i).get(words));
    map.element_strides[i] = static_cast<uint32_t>(element_stride(i).get(words));
  }
  for (unsigned i = 0; i < map.lower_corner.size(); ++i) {
    map.lower_corner[i] = lower_corner(i).get_signed(words);
    map.upper_corner[i] = upper_corner(i).get_signed(words);
  }
  map.channels = static_cast<uint32_t>(channels.get(words));
  map.pixels = static_cast<uint32_t>(pixels.get(words));
  return {};
}

} // namespace ptxrewrite::emulator
