// A register of DAC's affine stream behind divergent control (dac-isca17 §4.6): up to four tuples, each for some of the
// threads.
//
// The paper names the sets by two conditions, entries of the SIMT stack that the compiler keeps. Here a register knows
// for which threads each of its tuples was written, which is what these conditions say, and two of them tell at most
// four tuples apart. Threads whose tuple had to make room for a fifth are remembered: who asks for their value gets
// none, and the machine gives up.
#pragma once

#include "emulator/machines/dac/affine_threads.h"

#include <vector>

namespace ptxrewrite::emulator {

inline constexpr size_t most_divergent_tuples = 4;

class AffineValue {
public:
  struct Part {
    ThreadSet threads;
    AffineTuple tuple;
  };

  // Threads that nobody has written hold zero.
  AffineValue(uint32_t warps, unsigned bits);

  unsigned bits() const { return bits_; }
  // Disjoint, none empty, in the order in which they were written.
  const std::vector<Part>& parts() const { return parts_; }
  void write(const ThreadSet& threads, const AffineTuple& tuple);
  // What the threads of `wanted` have; all of them are covered. Nothing: the tuple of one of them is lost.
  std::optional<std::vector<Part>> read(const ThreadSet& wanted) const;

private:
  unsigned bits_;
  std::vector<Part> parts_;
  ThreadSet lost_;
};

} // namespace ptxrewrite::emulator
