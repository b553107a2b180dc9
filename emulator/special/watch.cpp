#include "emulator/special/watch.h"

#include "emulator/check.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

// Distinct 32-byte sectors that the active lanes touch (global, local, constant).
uint64_t sectors(const Warp& warp, const uint64_t* addresses, uint64_t bytes) {
  std::array<uint64_t, warp_size * 4> touched;
  size_t count = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    if ((warp.mask >> lane) & 1)
      for (uint64_t sector = addresses[lane] / 32; sector <= (addresses[lane] + bytes - 1) / 32; ++sector)
        if (count < touched.size()) touched[count++] = sector;
  std::sort(touched.begin(), touched.begin() + static_cast<ptrdiff_t>(count));
  return static_cast<uint64_t>(std::unique(touched.begin(), touched.begin() + static_cast<ptrdiff_t>(count)) -
                               touched.begin());
}

// Passes over the 32 banks of 4 bytes: lanes that want different words of one bank take turns.
uint64_t bank_passes(const Warp& warp, const uint64_t* addresses, uint64_t bytes) {
  std::array<std::array<uint64_t, 8 * warp_size>, 1> words;
  size_t count = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    if ((warp.mask >> lane) & 1)
      for (uint64_t word = addresses[lane] / 4; word <= (addresses[lane] + bytes - 1) / 4; ++word)
        if (count < words[0].size()) words[0][count++] = word;
  std::sort(words[0].begin(), words[0].begin() + static_cast<ptrdiff_t>(count));
  const auto end = std::unique(words[0].begin(), words[0].begin() + static_cast<ptrdiff_t>(count));
  std::array<uint64_t, 32> in_bank{};
  uint64_t passes = 0;
  for (auto word = words[0].begin(); word != end; ++word)
    passes = std::max(passes, ++in_bank[*word % 32]);
  return passes;
}

} // namespace

bool watch_access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                  AccessKind kind, std::span<const LaneRef> values) {
  Block& block = *warp.block;
  if (block.count_memory)
    block.counters->transactions[op.instruction] +=
        space == Space::shared ? bank_passes(warp, addresses, bytes) : sectors(warp, addresses, bytes);
  if (block.checker) block.checker->access(warp, op, space, addresses, bytes, kind, values);
  return true;
}

} // namespace ptxrewrite::emulator
