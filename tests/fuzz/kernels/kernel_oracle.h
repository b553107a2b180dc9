// Executes a random kernel from its statements, and computes the buffers that every correct machine must leave.
// Independent of PTX text, our IR and the emulator. All threads of a block execute a statement before the next one
// starts; branches split the set of threads and join it again. Errors that generated kernels must not have are
// reported: data races, unmapped or uninitialised memory, registers without a value, barriers or warp functions that
// not all threads reach.
#pragma once

#include "tests/fuzz/kernels/kernel_program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz {

struct OracleResult {
  std::vector<std::vector<uint8_t>> buffers; // after the launch, one for each of Kernel::buffers
  std::string problem;                       // empty if the kernel is sound, else the first problem
  uint64_t steps = 0;                        // executed statements, summed over threads
  uint64_t wrapped = 0; // sums, differences and products of 16 and 32 bits that overflowed, summed over threads
};

// For kernels that are not exact the buffers are meaningless, but the problem is valid unless approximate values change
// control flow.
OracleResult run_oracle(const Kernel& kernel, const Shape& shape);

} // namespace ptxrewrite::fuzz
