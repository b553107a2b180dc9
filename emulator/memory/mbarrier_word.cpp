// Arrivals and transactions at an mbarrier.
#include "emulator/memory/mbarrier_word.h"

#include <fmt/format.h>

namespace ptxrewrite::emulator {
namespace {

void complete_phase_if_done(BarrierWord& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.parity ^= 1;
  barrier.pending = barrier.expected;
}

std::string check_bytes(const BarrierWord& barrier) {
  if (barrier.bytes <= largest_barrier_count && barrier.bytes >= -largest_barrier_count) return {};
  return fmt::format("mbarrier with {} bytes of transactions", barrier.bytes);
}

} // namespace

BarrierWord unpack_barrier(uint64_t word) {
  BarrierWord barrier;
  barrier.expected = static_cast<int64_t>(word & 0xfffff);
  barrier.pending = static_cast<int64_t>(word >> 20 & 0xfffff);
  barrier.bytes = static_cast<int64_t>(word >> 40 & 0x1fffff) - (1 << 20);
  barrier.parity = static_cast<unsigned>(word >> 61 & 1);
  barrier.valid = word >> 62 == 1;
  return barrier;
}

uint64_t pack_barrier(const BarrierWord& barrier) {
  return static_cast<uint64_t>(barrier.expected) | static_cast<uint64_t>(barrier.pending) << 20 |
         static_cast<uint64_t>(barrier.bytes + (1 << 20)) << 40 | uint64_t(barrier.parity) << 61 | uint64_t(1) << 62;
}

std::string arrive_at_barrier(BarrierWord& barrier, int64_t count) {
  if (count < 1 || count > barrier.pending)
    return fmt::format("{} arrivals at an mbarrier that expects {} more", count, barrier.pending);
  barrier.pending -= count;
  complete_phase_if_done(barrier);
  return {};
}

std::string expect_bytes(BarrierWord& barrier, int64_t count) {
  barrier.bytes += count;
  return check_bytes(barrier);
}

std::string complete_bytes(BarrierWord& barrier, int64_t count) {
  barrier.bytes -= count;
  std::string wrong = check_bytes(barrier);
  if (wrong.empty()) complete_phase_if_done(barrier);
  return wrong;
}

} // namespace ptxrewrite::emulator
