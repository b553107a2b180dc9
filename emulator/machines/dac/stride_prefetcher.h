// MTA, the comparator of dac-isca17 §5.1.1: a prefetcher that learns the strides of loads, from trip to trip within a
// warp and from one warp to the next, and fetches ahead into a buffer of its own.
#pragma once

#include "emulator/core/observer.h"
#include "emulator/machines/dac/line_locks.h"

#include <deque>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

// Lines of 128 bytes; the least recently used one of a set makes room.
class LineCache {
public:
  LineCache(unsigned sets, unsigned ways) : ways_(ways), sets_(sets) {}
  // Is the line there? It is afterwards.
  bool touch(uint64_t line);
  bool contains(uint64_t line) const;

private:
  unsigned ways_;
  std::vector<std::vector<uint64_t>> sets_; // the most recently used one last
};

struct PrefetchCounts {
  uint64_t accesses = 0;   // lines that warps' loads asked for
  uint64_t misses = 0;     // of them: not in L1
  uint64_t covered = 0;    // of these: prefetched
  uint64_t prefetched = 0; // lines
  uint64_t unused = 0;     // of them: thrown out before anybody came
  double coverage() const { return misses ? static_cast<double>(covered) / static_cast<double>(misses) : 0; }
  PrefetchCounts& operator+=(const PrefetchCounts& other);
};

// Of one static load, in lines: what the prefetcher is worth to it.
struct LoadPrefetches {
  uint64_t accesses = 0;
  uint64_t misses = 0;  // of them: not in L1
  uint64_t covered = 0; // of these: prefetched
  // Of what was prefetched for the same warp, the trips between the request and its use; for a later one, the warps.
  uint64_t from_trips = 0, trips = 0;
  uint64_t from_warps = 0, warps = 0;
  LoadPrefetches& operator+=(const LoadPrefetches& other);
};

// Of one SM: an L1 of 48 KB in 4 ways, a buffer of 16 KB beside it (Table 1).
class StridePrefetcher {
public:
  // A warp (numbered through the SM) executes the load `instruction`, and its lanes want these lines; `address` is the
  // first lane's.
  void load(uint32_t instruction, uint64_t warp, uint64_t address, std::span<const uint64_t> lines);
  const PrefetchCounts& counts() const { return counts_; }
  // By instruction: of what its loads asked for.
  const std::map<uint32_t, LoadPrefetches>& by_load() const { return by_load_; }

private:
  struct Buffered {
    uint64_t line = 0;
    unsigned steps = 0;  // ahead of the access that asked for it
    bool across = false; // steps are warps, not trips
  };
  struct Stride {
    uint64_t last = 0;
    int64_t stride = 0;
    bool is_known = false;     // `last`
    bool is_confirmed = false; // `stride`, by two steps
    // True: the stride is what it was; predictions are good.
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
  std::deque<Buffered> buffer_; // in the order of their coming
  std::map<uint32_t, LoadPrefetches> by_load_;
  std::unordered_map<uint32_t, Load> loads_;
  PrefetchCounts counts_;
  unsigned ahead_ = 1; // predictions that are followed at a time; 0: none, for a while
  uint64_t period_prefetched_ = 0, period_unused_ = 0, period_accesses_ = 0;
};

// An observer: global loads of all blocks, which SMs take in turns.
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
