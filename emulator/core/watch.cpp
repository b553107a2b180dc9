#include "emulator/core/watch.h"

#include "emulator/core/check.h"
#include "emulator/core/observer.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t sector_bytes = 32;
constexpr uint64_t bank_count = 32; // banks of 4 bytes

// Collects numbers and returns the distinct ones: sectors, or words of shared memory.
class DistinctNumbers {
public:
  void add(uint64_t number) {
    if (count_ < numbers_.size() && (count_ == 0 || numbers_[count_ - 1] != number)) numbers_[count_++] = number;
  }
  std::span<const uint64_t> get() {
    std::sort(numbers_.begin(), numbers_.begin() + static_cast<ptrdiff_t>(count_));
    const auto end = std::unique(numbers_.begin(), numbers_.begin() + static_cast<ptrdiff_t>(count_));
    return {numbers_.data(), static_cast<size_t>(end - numbers_.begin())};
  }

private:
  // At most 32 bytes per lane, possibly unaligned: 9 words.
  std::array<uint64_t, warp_size * 9> numbers_;
  size_t count_ = 0;
};

// Lanes that access different words of one bank are served in different passes.
uint64_t bank_passes(std::span<const uint64_t> words) {
  std::array<uint64_t, bank_count> in_bank{};
  uint64_t passes = 0;
  for (uint64_t word : words)
    passes = std::max(passes, ++in_bank[word % bank_count]);
  return passes;
}

// Counts 32-byte sectors of global, local and constant memory, and passes over the banks of shared memory. Local
// memory is interleaved by word: the first word of all lanes of the warp, then the second (CUDA programming guide).
uint64_t transactions(const Warp& warp, Space space, const uint64_t* addresses, uint64_t bytes) {
  DistinctNumbers sectors, words;
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const SpaceAddress place =
        space == Space::generic ? split_generic(addresses[lane]) : SpaceAddress{space, addresses[lane]};
    const uint64_t last = place.address + bytes - 1;
    // The space is part of a sector's number: equal addresses in different spaces are different sectors.
    const uint64_t of_space = static_cast<uint64_t>(place.space) << 60;
    const bool is_shared = place.space == Space::shared || place.space == Space::cluster;
    if (is_shared || place.space == Space::local) {
      for (uint64_t word = place.address / 4; word <= last / 4; ++word)
        if (is_shared)
          words.add(word);
        else
          sectors.add(of_space | (word * warp_size + lane) * 4 / sector_bytes);
    } else {
      for (uint64_t sector = place.address / sector_bytes; sector <= last / sector_bytes; ++sector)
        sectors.add(of_space | sector);
    }
  }
  return sectors.get().size() + bank_passes(words.get());
}

} // namespace

namespace {
void tell_observers(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                    AccessKind kind) {
  Block& block = *warp.block;
  if (block.count_memory) block.counters->transactions[op.instruction] += transactions(warp, space, addresses, bytes);
  if (block.observer) block.observer->accessed(block, warp, op, {space, addresses, bytes, kind});
}
} // namespace

bool watch_access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                  AccessKind kind, std::span<const LaneRef> values) {
  tell_observers(warp, op, space, addresses, bytes, kind);
  if (MemoryChecker* checker = warp.block->checker.get())
    checker->access(warp, op, space, addresses, bytes, kind, values);
  return warp.state != WarpState::failed;
}

bool watch_product_reads(Warp& warp, const MicroOp& op, const uint64_t* addresses, uint64_t bytes, uint32_t number) {
  tell_observers(warp, op, Space::shared, addresses, bytes, AccessKind::load);
  if (MemoryChecker* checker = warp.block->checker.get()) checker->product_reads(warp, op, addresses, bytes, number);
  return warp.state != WarpState::failed;
}

} // namespace ptxrewrite::emulator
