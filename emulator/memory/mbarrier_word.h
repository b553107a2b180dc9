// What is in an mbarrier (PTX ISA 9.7.13.15), an 8-byte object in shared memory. The manual leaves open how; here, from
// the lowest bit on: expected arrivals (20 bits), pending arrivals (20), pending bytes of transactions + 2^20 (21),
// parity of the phase, a bit that is set in all barriers, and one that is set in those of layout v1. The state that
// arrive returns is the barrier as it was before.
//
// Layout v1 (PTX ISA 9.3) counts up to 511 arrivals: expected (9 bits), pending (9); then the report of the phase in
// progress and that of the phase before (a flag and 8 bits each), and the parity of the conditional phase, which ends
// with the primary one where nothing was reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace ptxrewrite::emulator {

// Limit of pending arrivals and of the transaction count in bytes (PTX ISA 9.7.13.15).
inline constexpr int64_t largest_barrier_count = (1 << 20) - 1;
inline constexpr int64_t largest_reporting_count = (1 << 9) - 1; // of layout v1

// What asynchronous operations have reported in a phase of a barrier of layout v1.
struct BarrierReport {
  bool any = false;
  uint8_t value = 0;
};

struct BarrierWord {
  int64_t expected = 0;
  int64_t pending = 0;
  int64_t bytes = 0; // of transactions that are still to come
  unsigned parity = 0;
  bool valid = true;
  bool reporting = false;          // layout v1
  unsigned conditional_parity = 0; // of layout v1
  BarrierReport report, last_report;

  int64_t largest_count() const { return reporting ? largest_reporting_count : largest_barrier_count; }
};

BarrierWord unpack_barrier(uint64_t word);
uint64_t pack_barrier(const BarrierWord& barrier);

// `count` arrivals or bytes. What is wrong with the barrier afterwards; empty: nothing.
std::string arrive_at_barrier(BarrierWord& barrier, int64_t count);
std::string expect_bytes(BarrierWord& barrier, int64_t count);
std::string complete_bytes(BarrierWord& barrier, int64_t count);
// An operation of the phase in progress reports; of several reports the barrier keeps the first one.
std::string report_to_barrier(BarrierWord& barrier, uint8_t value);

inline constexpr const char* not_initialised = "an mbarrier that is not initialised";
// `not_initialised` if the eight bytes at `host` are no barrier, or an empty string.
std::string check_initialised(const std::byte* host);

// Applies one of these changes to the barrier at `host`.
template <class Change> std::string change_barrier(std::byte* host, Change&& change) {
  uint64_t word;
  std::memcpy(&word, host, sizeof word);
  BarrierWord barrier = unpack_barrier(word);
  if (!barrier.valid) return not_initialised;
  std::string wrong = change(barrier);
  word = pack_barrier(barrier);
  if (wrong.empty()) std::memcpy(host, &word, sizeof word);
  return wrong;
}

} // namespace ptxrewrite::emulator
