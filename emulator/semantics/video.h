// The scalar video instructions of one lane: vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vset and vmad.
//
// Bytes, halves or words of the sources are extended to 33 bits, the result of the operation has 34 bits, is optionally
// clamped, then combined with c or merged into it. The steps and their widths follow the manual. ptxas expands these
// instructions into others and deviates: unsigned .sat clamps below 0 only, signed .sat into a byte or half turns
// negative results into the largest number, .min and .max use the sign of the low 32 bits, and vmad multiplies words as
// signed numbers.
#pragma once

#include "emulator/semantics/bits.h"
#include "emulator/semantics/compare.h"
#include "emulator/semantics/integer.h"

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

// The part of a register that an operand names.
struct VideoPart {
  uint8_t offset = 0; // bits
  uint8_t width = 32; // 8, 16 or 32

  static constexpr VideoPart byte(unsigned index) { return {static_cast<uint8_t>(8 * index), 8}; }
  static constexpr VideoPart half(unsigned index) { return {static_cast<uint8_t>(16 * index), 16}; }
};

struct VideoSource {
  VideoPart part;
  bool is_signed = false;
};

enum class SecondaryOperation : uint8_t { none, add, min, max };

// The steps applied to the result of the primary operation.
struct VideoResult {
  bool is_signed = false; // dtype
  bool saturate = false;
  SecondaryOperation secondary = SecondaryOperation::none;
  VideoPart part; // .b0 ... .h1 of the destination; the other bits of d come from c
};

enum class VideoOperation : uint8_t { add, sub, absdiff, min, max, shl, shr };

// The low `bits` bits of value as a signed number.
constexpr int64_t sign_extend(int64_t value, unsigned bits) {
  const unsigned unused = 64 - bits;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
}

constexpr int64_t video_extract(uint32_t value, VideoSource source) {
  const int64_t part = int64_t{value} >> source.part.offset;
  const int64_t zero_extended = part & ((int64_t{1} << source.part.width) - 1);
  return source.is_signed ? sign_extend(part, source.part.width) : zero_extended;
}

// Clamps a 34-bit intermediate result.
constexpr int64_t video_clamp(int64_t value, unsigned bits, bool is_signed) {
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return max(low, min(high, value));
}

// Clamping, secondary operation and merge.
constexpr uint32_t video_finish(int64_t intermediate, const VideoResult& result, uint32_t c) {
  int64_t value = sign_extend(intermediate, 34);
  if (result.saturate) value = video_clamp(value, result.part.width, result.is_signed);
  value = sign_extend(value, 33);
  const int64_t third = result.is_signed ? int64_t{static_cast<int32_t>(c)} : int64_t{c};
  if (result.secondary == SecondaryOperation::add) value += third;
  if (result.secondary == SecondaryOperation::min) value = min(value, third);
  if (result.secondary == SecondaryOperation::max) value = max(value, third);
  if (result.part.width == 32) return static_cast<uint32_t>(value);
  const uint32_t mask = ((1u << result.part.width) - 1) << result.part.offset;
  return ((static_cast<uint32_t>(value) << result.part.offset) & mask) | (c & ~mask);
}

// a and b are extended; for shifts b is the amount, already clamped to 32 or wrapped to 31.
template <VideoOperation Operation> constexpr int64_t video_operation(int64_t a, int64_t b) {
  switch (Operation) {
  case VideoOperation::add:
    return a + b;
  case VideoOperation::sub:
    return a - b;
  case VideoOperation::absdiff:
    return a < b ? b - a : a - b;
  case VideoOperation::min:
    return min(a, b);
  case VideoOperation::max:
    return max(a, b);
  case VideoOperation::shl:
    return static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  case VideoOperation::shr:
    return a >> b;
  }
  return 0;
}

template <VideoOperation Operation>
constexpr uint32_t video(uint32_t a, VideoSource a_source, uint32_t b, VideoSource b_source, uint32_t c,
                         const VideoResult& result) {
  return video_finish(video_operation<Operation>(video_extract(a, a_source), video_extract(b, b_source)), result, c);
}

// vshl and vshr; b is unsigned, whatever b_source specifies.
template <VideoOperation Operation, Overflow Mode>
constexpr uint32_t video_shift(uint32_t a, VideoSource a_source, uint32_t b, VideoSource b_source, uint32_t c,
                               const VideoResult& result) {
  const int64_t amount = video_extract(b, {b_source.part, false});
  const int64_t in_range = Mode == Overflow::wrap ? (amount & 31) : min(amount, int64_t{32});
  return video_finish(video_operation<Operation>(video_extract(a, a_source), in_range), result, c);
}

// The comparison gives 1 or 0, unsigned; secondary operation and merge as in video_finish.
template <IntegerComparison Comparison>
constexpr uint32_t vset(uint32_t a, VideoSource a_source, uint32_t b, VideoSource b_source, uint32_t c,
                        VideoResult result) {
  result.is_signed = false;
  result.saturate = false;
  return video_finish(compare<Comparison>(video_extract(a, a_source), video_extract(b, b_source)), result, c);
}

struct VmadShape {
  bool negate_product = false; // exactly one of a and b carries a minus
  bool negate_c = false;
  bool plus_one = false; // .po, excludes both negations
  bool saturate = false;
  uint8_t shift = 0; // 7 for .shr7, 15 for .shr15
};

// (a * b) + c at full width, shifted, its low 64 bits clamped to 32. The result is unsigned if both sources are
// unsigned and nothing is negated: dtype has no influence.
constexpr uint32_t vmad(uint32_t a, VideoSource a_source, uint32_t b, VideoSource b_source, uint32_t c,
                        const VmadShape& shape) {
  const bool is_signed = a_source.is_signed || b_source.is_signed || shape.negate_product || shape.negate_c;
  Int128 sum = Int128{video_extract(a, a_source)} * video_extract(b, b_source);
  if (shape.negate_product) sum = -sum;
  // -c is ~c + 1, where ~c is a number of 32 bits.
  const uint32_t third = shape.negate_c ? ~c : c;
  sum += is_signed ? int64_t{static_cast<int32_t>(third)} : int64_t{third};
  sum += shape.plus_one || shape.negate_c;
  const auto scaled = static_cast<uint64_t>(sum >> shape.shift);
  if (!shape.saturate) return static_cast<uint32_t>(scaled);
  if (is_signed) return static_cast<uint32_t>(saturate<int32_t>(static_cast<int64_t>(scaled)));
  return static_cast<uint32_t>(min(scaled, uint64_t{0xffffffff}));
}

} // namespace ptxrewrite::emulator::semantics
