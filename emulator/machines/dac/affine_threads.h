// The threads of one run of DAC's affine warp: those of a batch of blocks that are resident on an SM together
// (dac-isca17 §4.1), and sets of them.
#pragma once

#include "emulator/core/emulator.h"
#include "emulator/machines/dac/affine_tuple.h"

#include <bit>
#include <span>
#include <vector>

namespace ptxrewrite::emulator {

// The two-bit state of a warp in the warp-level stack (§4.5).
enum class WarpShare : uint8_t { none, all, mixed };

// Warps are numbered through the batch: those of its first block, those of the second, and so on.
class AffineBatch {
public:
  AffineBatch(const Dimensions& block, std::span<const Dimensions> block_indices);

  const Dimensions& block() const { return block_; }
  uint32_t blocks() const { return static_cast<uint32_t>(block_indices_.size()); }
  uint32_t warps_per_block() const { return warps_per_block_; }
  uint32_t warps() const { return blocks() * warps_per_block_; }
  uint32_t block_of(uint32_t warp) const { return warp / warps_per_block_; }
  const Dimensions& block_index(uint32_t block) const { return block_indices_[block]; }
  uint32_t members(uint32_t warp) const; // existing lanes
  ThreadPosition position(uint32_t warp, unsigned lane) const;

private:
  Dimensions block_;
  std::vector<Dimensions> block_indices_;
  uint32_t threads_ = 0, warps_per_block_ = 0; // per block
};

// A set of threads: one bit per lane of each warp of a batch.
class ThreadSet {
public:
  ThreadSet() = default;
  explicit ThreadSet(uint32_t warps) : lanes_(warps) {}
  static ThreadSet all(const AffineBatch& batch);

  uint32_t warps() const { return static_cast<uint32_t>(lanes_.size()); }
  uint32_t operator[](uint32_t warp) const { return lanes_[warp]; }
  uint32_t& operator[](uint32_t warp) { return lanes_[warp]; }
  bool empty() const;
  WarpShare share(uint32_t warp, uint32_t members) const;

  ThreadSet& operator&=(const ThreadSet& other);
  ThreadSet& operator|=(const ThreadSet& other);
  ThreadSet& operator^=(const ThreadSet& other);
  ThreadSet& remove(const ThreadSet& other);
  friend ThreadSet operator&(ThreadSet a, const ThreadSet& b) { return a &= b; }
  friend ThreadSet operator|(ThreadSet a, const ThreadSet& b) { return a |= b; }
  friend ThreadSet without(ThreadSet a, const ThreadSet& b) { return a.remove(b); }
  bool operator==(const ThreadSet&) const = default;

private:
  std::vector<uint32_t> lanes_; // by warp
};

} // namespace ptxrewrite::emulator
