// A register of DAC's affine stream after divergent control flow (dac-isca17 §4.6): up to four tuples, each for some of
// the threads.
//
// The paper identifies the thread sets by two conditions, entries of the SIMT stack that the compiler assigns. Here a
// register stores the threads for which each of its tuples was written, which is equivalent, and two conditions
// distinguish at most four tuples. Threads whose tuple was displaced by a fifth one are remembered: reading their value
// returns nullopt, and the machine gives up.
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

  // Threads without a write have the value zero.
  AffineValue(uint32_t warps, unsigned bits);

  unsigned bits() const { return bits_; }
  // Disjoint, not empty, in the order in which they were written.
  const std::vector<Part>& parts() const { return parts_; }
  void write(const ThreadSet& threads, const AffineTuple& tuple);
  // The values of the threads in `wanted`, all of them. Returns nullopt if the tuple of one of them is lost.
  std::optional<std::vector<Part>> read(const ThreadSet& wanted) const;

private:
  unsigned bits_;
  std::vector<Part> parts_;
  ThreadSet lost_;
};

} // namespace ptxrewrite::emulator
