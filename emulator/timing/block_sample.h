// Statistics of a launch of which only some blocks run, taken as representative of the grid: counts scaled to all
// blocks, and the error bound of a mean over such blocks.
#pragma once

#include "emulator/core/counters.h"

#include <cmath>
#include <cstdint>

namespace ptxrewrite::timing {

// The values of one quantity in the blocks that ran.
class BlockSample {
public:
  void add(double value);
  uint64_t size() const { return count_; }
  double mean() const { return mean_; }
  // Half the width of the 95 % confidence interval of the mean over all `blocks` of the grid, relative to the mean, for
  // a random sample: t s / (mean sqrt(n)) sqrt((N - n) / (N - 1)). Infinite if fewer than two of several blocks ran; 0
  // if all blocks ran.
  double bound(uint64_t blocks) const;

private:
  uint64_t count_ = 0;
  double mean_ = 0, squares_ = 0; // squares_: sum of squared deviations from the mean
};

// Scales the counts of `ran` blocks to `blocks` blocks.
emulator::Counters counts_of_all(const emulator::Counters& some, uint64_t ran, uint64_t blocks);

} // namespace ptxrewrite::timing
