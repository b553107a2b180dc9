// A launch of which only some blocks run, the others of the grid taken to be like them: what the launch counts then,
// and how far a mean over such blocks may be off.
#pragma once

#include "emulator/core/counters.h"

#include <cmath>
#include <cstdint>

namespace ptxrewrite::timing {

// One figure of each block that ran.
class BlockSample {
public:
  void add(double value);
  uint64_t size() const { return count_; }
  double mean() const { return mean_; }
  // Half the width of the 95 % confidence interval of the mean over all `blocks` of the grid, relative to it, as if the
  // sample had been drawn at random: t s / (mean sqrt(n)) sqrt((N - n) / (N - 1)). Infinite where one block stands for
  // several; 0 where all ran.
  double bound(uint64_t blocks) const;

private:
  uint64_t count_ = 0;
  double mean_ = 0, squares_ = 0; // squares_: of the differences from the mean
};

// Counts of `ran` blocks, as those of `blocks` would be.
emulator::Counters counts_of_all(const emulator::Counters& some, uint64_t ran, uint64_t blocks);

} // namespace ptxrewrite::timing
