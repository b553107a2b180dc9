// Arrivals and transactions at an mbarrier.
#include "emulator/memory/mbarrier_word.h"

#include <fmt/format.h>

#include <utility>

namespace ptxrewrite::emulator {
namespace {

void complete_phase_if_done(BarrierWord& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.parity ^= 1;
  barrier.pending = barrier.expected;
  if (!barrier.report.any) barrier.conditional_parity ^= 1;
  barrier.last_report = std::exchange(barrier.report, {});
}

// Fields of layout v1.
constexpr uint64_t count_mask = 0x1ff, report_mask = 0x1ff; // a report: a flag above 8 bits
constexpr unsigned pending_shift = 9, report_shift = 18, last_report_shift = 27, conditional_shift = 36;
constexpr uint64_t unused_mask = uint64_t(7) << 37;
constexpr unsigned bytes_shift = 40, parity_shift = 61, valid_shift = 62, reporting_shift = 63;

BarrierReport unpack_report(uint64_t bits) {
  return {(bits >> 8 & 1) != 0, static_cast<uint8_t>(bits)};
}
uint64_t pack_report(const BarrierReport& report) {
  return uint64_t(report.any) << 8 | report.value;
}

std::string check_bytes(const BarrierWord& barrier) {
  if (barrier.bytes <= largest_barrier_count && barrier.bytes >= -largest_barrier_count) return {};
  return fmt::format("mbarrier with {} bytes of transactions", barrier.bytes);
}

} // namespace

BarrierWord unpack_barrier(uint64_t word) {
  BarrierWord barrier;
  barrier.bytes = static_cast<int64_t>(word >> bytes_shift & 0x1fffff) - (1 << 20);
  barrier.parity = static_cast<unsigned>(word >> parity_shift & 1);
  barrier.valid = (word >> valid_shift & 1) != 0;
  barrier.reporting = (word >> reporting_shift & 1) != 0;
  if (!barrier.reporting) {
    barrier.expected = static_cast<int64_t>(word & 0xfffff);
    barrier.pending = static_cast<int64_t>(word >> 20 & 0xfffff);
    return barrier;
  }
  barrier.valid = barrier.valid && (word & unused_mask) == 0;
  barrier.expected = static_cast<int64_t>(word & count_mask);
  barrier.pending = static_cast<int64_t>(word >> pending_shift & count_mask);
  barrier.report = unpack_report(word >> report_shift & report_mask);
  barrier.last_report = unpack_report(word >> last_report_shift & report_mask);
  barrier.conditional_parity = static_cast<unsigned>(word >> conditional_shift & 1);
  return barrier;
}

uint64_t pack_barrier(const BarrierWord& barrier) {
  const uint64_t common = static_cast<uint64_t>(barrier.bytes + (1 << 20)) << bytes_shift |
                          uint64_t(barrier.parity) << parity_shift | uint64_t(1) << valid_shift;
  const auto expected = static_cast<uint64_t>(barrier.expected), pending = static_cast<uint64_t>(barrier.pending);
  if (!barrier.reporting) return common | expected | pending << 20;
  return common | uint64_t(1) << reporting_shift | expected | pending << pending_shift |
         pack_report(barrier.report) << report_shift | pack_report(barrier.last_report) << last_report_shift |
         uint64_t(barrier.conditional_parity) << conditional_shift;
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

std::string report_to_barrier(BarrierWord& barrier, uint8_t value) {
  if (!barrier.reporting) return "a report to an mbarrier of layout v0, which keeps none";
  if (!barrier.report.any) barrier.report = {true, value};
  return {};
}

std::string check_initialised(const std::byte* host) {
  uint64_t word;
  std::memcpy(&word, host, sizeof word);
  return unpack_barrier(word).valid ? std::string() : not_initialised;
}

} // namespace ptxrewrite::emulator
