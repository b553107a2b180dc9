// MTA, the comparator of dac-isca17 §5.1.1: a prefetcher that learns the strides of loads, from trip to trip within a
// warp and from warp to warp, and prefetches into a separate buffer.
#pragma once

#include "emulator/core/observer.h"
#include "emulator/machines/dac/line_locks.h"

#include <deque>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

// A cache of 128-byte lines with LRU replacement.
class LineCache {
public:
  LineCache(unsigned sets, unsigned ways) : ways_(ways), sets_(sets) {}
  // Returns whether the line is present, and makes it the most recently used one.
  bool touch(uint64_t line);
  bool contains(uint64_t line) const;

private:
  unsigned ways_;
  std::vector<std::vector<uint64_t>> sets_; // the most recently used one last
};

struct PrefetchCounts {
  uint64_t accesses = 0;   // lines requested by warps' loads
  uint64_t misses = 0;     // of them, those not in L1
  uint64_t covered = 0;    // of the misses, those prefetched
  uint64_t prefetched = 0; // lines
  uint64_t unused = 0;     // of them, those evicted before their use
  double coverage() const { return misses ? static_cast<double>(covered) / static_cast<double>(misses) : 0; }
  PrefetchCounts& operator+=(const PrefetchCounts& other);
};

// Prefetches for one static load, in lines.
struct LoadPrefetches {
  uint64_t accesses = 0;
  uint64_t misses = 0;  // of them, those not in L1
  uint64_t covered = 0; // of the misses, those prefetched
  // Covered lines and the distance from request to use: in trips if prefetched for the same warp, else in warps.
  uint64_t from_trips = 0, trips = 0;
  uint64_t from_warps = 0, warps = 0;
  LoadPrefetches& operator+=(const LoadPrefetches& other);
};

// The prefetcher of one SM: an L1 of 48 KB in 4 ways, a buffer of 16 KB beside it (Table 1).
class StridePrefetcher {
public:
  // A warp (numbered through the SM) executes the load `instruction`, and its lanes request these lines; `address` is
  // that of the first lane.
  void load(uint32_t instruction, uint64_t warp, uint64_t address, std::span<const uint64_t> lines);
  const PrefetchCounts& counts() const { return counts_; }
  // The counts of each load, by instruction.
  const std::map<uint32_t, LoadPrefetches>& by_load() const { return by_load_; }

private:
  struct Buffered {
    uint64_t line = 0;
    unsigned steps = 0;  // ahead of the access that requested it
    bool across = false; // whether steps are warps instead of trips
  };
  struct Stride {
    uint64_t last = 0;
    int64_t stride = 0;
    bool is_known = false;     // whether `last` is valid
    bool is_confirmed = false; // whether two steps have confirmed `stride`
    // Returns true if the stride is unchanged, so that predictions are reliable.
    bool train(uint64_t address, int64_t steps);
  };
  struct Load {
    std::unordered_map<uint64_t, Stride> of_warp; // within the warp
    Stride across;                                // from warp to warp
    uint64_t last_warp = 0;
  };

  void prefetch(std::span<const uint64_t> lines, int64_t stride, unsigned steps, bool across);
  void throttle();

  static constexpr size_t buffer_lines = 128;
  static constexpr unsigned most_ahead = 4;

  LineCache cache_{96, 4};
  std::deque<Buffered> buffer_; // in the order of their arrival
  std::map<uint32_t, LoadPrefetches> by_load_;
  std::unordered_map<uint32_t, Load> loads_;
  PrefetchCounts counts_;
  unsigned ahead_ = 1; // predictions followed at a time; 0: paused
  uint64_t period_prefetched_ = 0, period_unused_ = 0, period_accesses_ = 0;
};

// An observer: global loads of all blocks, which are assigned to SMs in turns.
class PrefetchStudy final : public Observer {
public:
  explicit PrefetchStudy(uint32_t multiprocessors) : machines_(multiprocessors) {}
  void before(Block& block, Warp& warp, const MicroOp& op) override;
  PrefetchCounts counts() const;
  // By number of the instruction in the kernel.
  std::map<uint32_t, LoadPrefetches> by_load() const;

private:
  std::vector<StridePrefetcher> machines_;
};

} // namespace ptxrewrite::emulator
