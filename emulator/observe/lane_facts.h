// Properties of a lane array over the 32 lanes of a warp, computed in a few vector instructions: uniform, affine in the
// thread index, within 16 bits, and a hash for comparisons. Studies of redundancy classify every result of a kernel:
// this is their inner loop.
#pragma once

#include "emulator/core/micro_op.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ptxrewrite::emulator {

// Positions of the threads of a warp relative to its first thread.
struct WarpShape {
  // Thread index minus that of lane 0, as unsigned factors of a stride.
  alignas(64) std::array<uint32_t, warp_size> x{}, y{}, z{};
  bool has_y = false, has_z = false; // not all zero
  bool regular = false;              // all warps of the block have this shape
  // Lanes that define the strides: x_lane and x_lane + 1 are neighbours in a row, y_lane is the first lane of the next
  // row of the same plane, z_lane is in the next plane. warp_size: no such lane, the stride is 0.
  unsigned x_lane = warp_size, y_lane = warp_size, z_lane = warp_size;

  // The shape of warp number `warp` in a block with these extents.
  static WarpShape of(uint32_t warp, uint32_t block_x, uint32_t block_y);
};

// Packed into one word, since there is one for every register of every warp.
class LaneFacts {
public:
  LaneFacts() = default; // nothing is known
  struct Pattern {
    bool uniform = false, affine = false, consecutive = false;
    bool narrow = false, negative = false;
  };
  LaneFacts(uint64_t hash, const Pattern& is)
      : word_((hash & ~flags) | known_bit | (is.uniform ? uniform_bit : 0) | (is.affine ? affine_bit : 0) |
              (is.consecutive ? consecutive_bit : 0) | (is.narrow ? narrow_bit : 0) |
              (is.negative ? negative_bit : 0)) {}

  bool known() const { return word_ != 0; }
  uint64_t hash() const { return word_ & ~flags; }
  bool uniform() const { return word_ & uniform_bit; } // the same in all lanes
  // base + i * x + j * y + k * z for the thread index (x, y, z), modulo 2^bits; true of uniform arrays, too.
  bool affine() const { return word_ & affine_bit; }
  // base + i * lane, modulo 2^bits: one base and one stride. True of uniform arrays, too.
  bool consecutive() const { return word_ & consecutive_bit; }
  // The upper 16 of 32 bits are the same in all lanes: all 0 or all 1 (composite-hpca13 §5.2: half width, extended by
  // the sign). For 64 bits: the upper 48.
  bool narrow() const { return word_ & narrow_bit; }
  bool negative() const { return word_ & negative_bit; }

private:
  static constexpr uint64_t uniform_bit = 1, affine_bit = 2, narrow_bit = 4, negative_bit = 8, known_bit = 16,
                            consecutive_bit = 32, flags = 63;
  uint64_t word_ = 0;
};

// The facts of an array in all 32 lanes; `bits` is the element width (1: a predicate's mask, 8 .. 128).
LaneFacts lane_facts(const std::byte* lanes, unsigned bits, const WarpShape& shape);

// The facts of the lanes in `mask`, which is not 0. Other lanes count as copies of the first lane in `mask`, so that
// uniform values hash alike for every mask; affine() refers to the lanes in `mask` only.
LaneFacts lane_facts_in(const std::byte* lanes, unsigned bits, const WarpShape& shape, uint32_t mask);

// The facts of a value that is the same in all lanes; `value` is zero-extended.
LaneFacts uniform_facts(uint64_t value, unsigned bits, uint64_t high = 0);

} // namespace ptxrewrite::emulator
