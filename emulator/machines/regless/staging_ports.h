// Ports of the operand staging units and of L1 (RegLess §5.2, Table 1). A bank processes one read or write per cycle,
// and one tag look-up: of a register read, or, if no read uses the tags in that cycle, of a preload from the bank's
// queue. L1 accepts one request per cycle and has 32 miss registers; a line that is on its way is requested once.
#pragma once

#include "emulator/machines/regless/staging_unit.h"

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace ptxrewrite::emulator {

// The cycles in which one port is in use; at most `window` cycles ahead.
class PortCycles {
public:
  bool is_free(uint64_t cycle) const { return used_[cycle % window] != cycle + 1; }
  void use(uint64_t cycle) { used_[cycle % window] = cycle + 1; }

private:
  static constexpr uint64_t window = 1024;
  std::array<uint64_t, window> used_{}; // cycle plus one
};

class BankPorts {
public:
  // The cycle of the read, `now` or the next one in which data and tags are free.
  uint64_t read(uint64_t now);
  // The cycle of the write; its tags were looked up when its entry was taken.
  uint64_t write(uint64_t now);
  bool has_idle_tags(uint64_t cycle) const { return tags_.is_free(cycle); }

private:
  PortCycles data_, tags_;
};

// L1's port and miss registers.
class L1Ports {
public:
  static constexpr uint32_t miss_registers = 32;
  // Takes the port for `requests` cycles from `now` on.
  void request(uint64_t now, uint64_t requests);
  // The cycle in which a line arrives: it hits, it is fetched from below, or another request has fetched it already.
  uint64_t arrival(uint64_t now, uint64_t line, bool misses, StagingCounters& counters);

private:
  static constexpr uint64_t l1_cycles = 28, memory_cycles = 200;
  struct Miss {
    uint64_t line = UINT64_MAX, until = 0;
  };
  uint64_t free_ = 0;
  std::array<Miss, miss_registers> misses_{};
};

// A preload that waits for its bank's tags.
struct QueuedPreload {
  uint32_t slot = 0;
  PreloadSource source = PreloadSource::staged;
  bool is_compressed = false;
  uint64_t line = 0;                               // if it comes from L1 or below
  uint64_t l1_requests = 0, compressor_writes = 0; // it causes
};

} // namespace ptxrewrite::emulator
