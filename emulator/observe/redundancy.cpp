#include "emulator/observe/redundancy.h"

#include "support/mix.h"

#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

// The finaliser of SplitMix64.

uint64_t hash(const ObservedInstruction& at) {
  uint64_t state = mixed_bits(uint64_t(at.number) << 32 | at.mask);
  for (const ObservedValue& source : at.sources) {
    if (at.mask == full_mask && source.bits > 1) {
      uint64_t word = 0; // several lanes at once
      for (unsigned byte = 0; byte < warp_size * source.bits / 8; byte += sizeof word) {
        std::memcpy(&word, source.lanes + byte, sizeof word);
        state = mixed_bits(state + 0x9e3779b97f4a7c15 + word);
      }
      continue;
    }
    for (uint32_t lanes = at.mask; lanes; lanes &= lanes - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
      state = mixed_bits(state + 0x9e3779b97f4a7c15 + source.low(lane));
      if (source.bits == 128) state = mixed_bits(state + source.high(lane));
    }
  }
  return state;
}

} // namespace

void RedundancyStudy::executing(const ObservedInstruction& at) {
  RedundancyRow& row = rows_[at.number];
  row.function = at.function;
  row.instruction = at.instruction;
  const auto lanes = static_cast<uint64_t>(std::popcount(at.mask));
  ++row.executions;
  row.lanes += lanes;
  if (!at.complete) return;
  bool uniform = true;
  for (const ObservedValue& source : at.sources)
    uniform = uniform && source.same_in(at.mask);
  if (uniform) {
    ++row.uniform;
    row.uniform_lanes += lanes;
  }
  const uint32_t own = 1u << at.warp->index;
  uint32_t& warps = done_[at.block->linear][hash(at)];
  if (warps & ~own) {
    ++row.repeated;
    row.repeated_lanes += lanes;
  }
  warps |= own;
}

void RedundancyStudy::block_ended(Block& block) {
  done_.erase(block.linear);
}

RedundancyRow RedundancyStudy::total() const {
  RedundancyRow sum;
  for (const auto& [number, row] : rows_) {
    sum.executions += row.executions;
    sum.lanes += row.lanes;
    sum.uniform += row.uniform;
    sum.uniform_lanes += row.uniform_lanes;
    sum.repeated += row.repeated;
    sum.repeated_lanes += row.repeated_lanes;
  }
  return sum;
}

} // namespace ptxrewrite::emulator
