// Carries out a random kernel from its statements: what any right machine must leave in the buffers. Knows nothing of
// PTX text, of our IR or of the emulator. All threads of a block go through a statement before the next one begins;
// branches split the set of threads and join it again. What a generated kernel must never do is reported: data races,
// memory that is not there or has no contents, registers without a value, barriers or warp functions that not all come
// to.
#pragma once

#include "tests/fuzz/kernels/kernel_program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz {

struct OracleResult {
  std::vector<std::vector<uint8_t>> buffers; // after the launch, one for each of Kernel::buffers
  std::string problem;                       // empty when the kernel is sound; the first one else
  uint64_t steps = 0;                        // statements carried out, by thread
  uint64_t wrapped = 0; // sums, differences and products of 16 and 32 bits that did not fit, by thread
};

// For kernels that are not exact the buffers mean nothing, the problem still does... unless approximate values lead
// control elsewhere.
OracleResult run_oracle(const Kernel& kernel, const Shape& shape);

} // namespace ptxrewrite::fuzz
