// What a tensor map says: a tensor in global memory, the box of it that one tensor copy moves, and how the box lies in
// shared memory (PTX ISA 5.5, "Tensors"; CUDA 13.0 driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col).
// Plain numbers: what the 128 bytes of a map are is the business of whoever carries out copies, a GPU or the emulator
// (emulator/tensor_copies/tensor_map_object.h).
//
// Dimension 0 is the innermost one, whose elements lie side by side. Of im2col maps dimension 0 is C, the last one N,
// and between them lie W, H and D, as far as there are that many.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

inline constexpr unsigned most_tensor_dimensions = 5;
inline constexpr unsigned tensor_map_bytes = 128;
inline constexpr unsigned tensor_map_alignment = 64; // CUDA driver API, "tensorMap address must be aligned"

// Numbered as tensormap.replace has them (PTX ISA 9.7.9.28, "Tensormap new_val validity").
enum class TensorElement : uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f32_ftz,
  f64,
  bf16,
  tf32,
  tf32_ftz,
  b4x16,
  b4x16_p64,
  b6x16_p32,
};
enum class TensorInterleave : uint8_t { none, bytes16, bytes32 };
enum class SwizzleSpan : uint8_t { none, bytes32, bytes64, bytes128, bytes96 };
enum class SwizzleAtom : uint8_t { bytes16, bytes32, bytes32_flip8, bytes64 }; // what stays together
enum class TensorFill : uint8_t { zeros, nan };
enum class TensorAccess : uint8_t { tiled, im2col, im2col_w, im2col_w128 };
inline constexpr unsigned tensor_element_count = 16;

struct TensorMap {
  TensorAccess access = TensorAccess::tiled;
  TensorElement element = TensorElement::u8;
  TensorInterleave interleave = TensorInterleave::none;
  SwizzleSpan swizzle = SwizzleSpan::none;
  SwizzleAtom atom = SwizzleAtom::bytes16;
  TensorFill fill = TensorFill::zeros;
  uint8_t l2_promotion = 0; // none, 64, 128, 256 bytes: a hint
  uint32_t rank = 1;
  uint64_t address = 0;                                   // of the element with coordinates 0
  std::array<uint64_t, most_tensor_dimensions> dims{};    // elements
  std::array<uint64_t, most_tensor_dimensions> strides{}; // bytes from one to the next; not of dimension 0
  std::array<uint32_t, most_tensor_dimensions> box{};     // elements; of tiled maps
  std::array<uint32_t, most_tensor_dimensions> element_strides{};
  // Of im2col maps, in the order W, H, D: first and last place of the filter's corner, from the image's own corners.
  std::array<int32_t, 3> lower_corner{}, upper_corner{};
  uint32_t channels = 0; // elements of dimension 0 that a copy moves of each pixel
  uint32_t pixels = 0;   // that a copy moves

  bool operator==(const TensorMap&) const = default;
};

// Bits of an element in global memory.
unsigned element_bits(TensorElement element);
bool is_float(TensorElement element);
// Bytes within which chunks change places; 0: none do.
unsigned span_bytes(SwizzleSpan swizzle);

// As launch files spell them: "f16", "tf32_ftz"; the CUDA enumerations' values in their order.
std::optional<TensorElement> parse_tensor_element(std::string_view name);
std::string_view spelling(TensorElement element);
// CUtensorMapDataType, CUtensorMapSwizzle (CUDA 13.0). Nothing: there is no such value.
std::optional<TensorElement> tensor_element_of_cuda(int64_t value);
struct TensorSwizzle {
  SwizzleSpan span = SwizzleSpan::none;
  SwizzleAtom atom = SwizzleAtom::bytes16;
};
std::optional<TensorSwizzle> tensor_swizzle_of_cuda(int64_t value);

// What of the driver API's requirements a map does not fulfil, as a sentence's end: "box[0] is 300; 1 to 256 are
// possible". Empty: it is a legal map.
std::string find_fault(const TensorMap& map);

} // namespace ptxrewrite::ir
