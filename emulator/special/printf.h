// printf of a kernel, called as vprintf with a format and a buffer of arguments in kernel memory (CUDA programming
// guide, Formatted Output).
#pragma once

#include "emulator/core/block.h"

#include <string>

namespace ptxrewrite::emulator {

inline constexpr size_t longest_string = 64 << 10;

// Reads a string in the kernel's memory, up to its zero or its first `most` bytes. Returns false if it is not all in
// memory, or longer than longest_string; then sets `wrong` to a message, unless it has one already.
bool read_string(Warp& warp, unsigned lane, uint64_t address, size_t most, std::string& text, std::string& wrong);

struct PrintfResult {
  int32_t returned = 0; // number of parsed arguments; -1: there is no format
  std::string wrong;    // message about a pointer out of the kernel's memory; empty: success
};
// Appends the lane's text to the block's output, up to the limit of the output.
PrintfResult print_formatted(Warp& warp, unsigned lane, uint64_t format, uint64_t arguments);

} // namespace ptxrewrite::emulator
