#include "emulator/machines/dac/affine_threads.h"

#include "emulator/core/micro_op.h"

#include <algorithm>

namespace ptxrewrite::emulator {

AffineBatch::AffineBatch(const Dimensions& block, std::span<const Dimensions> block_indices)
    : block_(block), block_indices_(block_indices.begin(), block_indices.end()),
      threads_(static_cast<uint32_t>(block.count())), warps_per_block_((threads_ + warp_size - 1) / warp_size) {}

uint32_t AffineBatch::members(uint32_t warp) const {
  const uint32_t first = warp % warps_per_block_ * warp_size;
  const uint32_t count = std::min(threads_ - first, warp_size);
  return count == warp_size ? full_mask : (1u << count) - 1;
}

ThreadPosition AffineBatch::position(uint32_t warp, unsigned lane) const {
  const uint32_t thread = warp % warps_per_block_ * warp_size + lane;
  const Dimensions& index = block_indices_[block_of(warp)];
  return {thread % block_.x, thread / block_.x % block_.y, thread / block_.x / block_.y, index.x, index.y, index.z};
}

ThreadSet ThreadSet::all(const AffineBatch& batch) {
  ThreadSet set(batch.warps());
  for (uint32_t warp = 0; warp < batch.warps(); ++warp)
    set[warp] = batch.members(warp);
  return set;
}

bool ThreadSet::empty() const {
  return std::ranges::all_of(lanes_, [](uint32_t lanes) { return lanes == 0; });
}

WarpShare ThreadSet::share(uint32_t warp, uint32_t members) const {
  return lanes_[warp] == 0 ? WarpShare::none : lanes_[warp] == members ? WarpShare::all : WarpShare::mixed;
}

ThreadSet& ThreadSet::operator&=(const ThreadSet& other) {
  for (size_t warp = 0; warp < lanes_.size(); ++warp)
    lanes_[warp] &= other.lanes_[warp];
  return *this;
}

ThreadSet& ThreadSet::operator|=(const ThreadSet& other) {
  for (size_t warp = 0; warp < lanes_.size(); ++warp)
    lanes_[warp] |= other.lanes_[warp];
  return *this;
}

ThreadSet& ThreadSet::operator^=(const ThreadSet& other) {
  for (size_t warp = 0; warp < lanes_.size(); ++warp)
    lanes_[warp] ^= other.lanes_[warp];
  return *this;
}

ThreadSet& ThreadSet::remove(const ThreadSet& other) {
  for (size_t warp = 0; warp < lanes_.size(); ++warp)
    lanes_[warp] &= ~other.lanes_[warp];
  return *this;
}

} // namespace ptxrewrite::emulator
