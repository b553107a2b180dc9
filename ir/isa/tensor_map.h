// The contents of a tensor map: a tensor in global memory, the box of it that one tensor copy moves, and the layout of
// the box in shared memory (PTX ISA 5.5, "Tensors"; CUDA 13.0 driver API, cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col). Plain numbers: the encoding in the 128 bytes of a map is defined by the executing machine,
// a GPU or the emulator (emulator/tensor_copies/tensor_map_object.h).
//
// Dimension 0 is the innermost one, whose elements are contiguous. In im2col maps dimension 0 is C, the last one is N,
// and those between are W, H and D, as many as the rank allows.
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

// Numbered as in tensormap.replace (PTX ISA 9.7.9.28, "Tensormap new_val validity").
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
enum class SwizzleAtom : uint8_t { bytes16, bytes32, bytes32_flip8, bytes64 }; // unit that is moved as a whole
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
  std::array<uint64_t, most_tensor_dimensions> strides{}; // bytes between consecutive elements; unused for dimension 0
  std::array<uint32_t, most_tensor_dimensions> box{};     // elements; tiled maps only
  std::array<uint32_t, most_tensor_dimensions> element_strides{};
  // Im2col maps only, in the order W, H, D: offsets of the filter's first and last position from the image's corners.
  std::array<int32_t, 3> lower_corner{}, upper_corner{};
  uint32_t channels = 0; // elements of dimension 0 that a copy moves per pixel
  uint32_t pixels = 0;   // pixels that a copy moves

  bool operator==(const TensorMap&) const = default;
};

// Size of an element in global memory, in bits.
unsigned element_bits(TensorElement element);
// Is it padded in shared memory, 16 elements in 16 bytes (cuda.h, CUtensorMapDataType: 16U4_ALIGN16B, 16U6_ALIGN16B)?
bool is_padded(TensorElement element);
bool is_float(TensorElement element);
// Bytes within which the swizzle permutes chunks; 0: no swizzle.
unsigned span_bytes(SwizzleSpan swizzle);

// Names as spelled in launch files: "f16", "tf32_ftz". parse_tensor_element returns nullopt for other names.
std::optional<TensorElement> parse_tensor_element(std::string_view name);
std::string_view spelling(TensorElement element);
// Values of CUtensorMapDataType and CUtensorMapSwizzle (CUDA 13.0). Return nullopt for other values.
std::optional<TensorElement> tensor_element_of_cuda(int64_t value);
struct TensorSwizzle {
  SwizzleSpan span = SwizzleSpan::none;
  SwizzleAtom atom = SwizzleAtom::bytes16;
  bool operator==(const TensorSwizzle&) const = default;
};
std::optional<TensorSwizzle> tensor_swizzle_of_cuda(int64_t value);
// As spelled in launch files, in the order of CUtensorMapSwizzle.
inline constexpr std::array<std::string_view, 7> tensor_swizzle_names = {
    "none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"};
// nullopt: the driver API has no such swizzle.
std::optional<std::string_view> spelling(TensorSwizzle swizzle);

// Describes the first requirement of the driver API that a map violates, as the end of a sentence: "box[0] is 300; 1 to
// 256 are possible". Empty: the map is legal.
std::string find_fault(const TensorMap& map);

} // namespace ptxrewrite::ir
