// printf of a kernel, as vprintf gets it: a format and a buffer of arguments in the kernel's memory (CUDA programming
// guide, Formatted Output).
#pragma once

#include "emulator/core/block.h"

#include <string>

namespace ptxrewrite::emulator {

inline constexpr size_t longest_string = 64 << 10;

// A string in the kernel's memory, up to its zero or its first `most` bytes. False: it is not all in memory, or longer
// than longest_string; then `wrong` says so, unless it says something already.
bool read_string(Warp& warp, unsigned lane, uint64_t address, size_t most, std::string& text, std::string& wrong);

struct PrintfResult {
  int32_t returned = 0; // arguments that were parsed; -1: there is no format
  std::string wrong;    // a pointer leads out of the kernel's memory; empty: all went well
};
// Appends what the lane prints to the block's output, as far as that may grow.
PrintfResult print_formatted(Warp& warp, unsigned lane, uint64_t format, uint64_t arguments);

} // namespace ptxrewrite::emulator
