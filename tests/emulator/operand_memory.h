// The operand matrix of memory instructions and calls: kinds of addresses, of loaded and stored operands, and of
// arguments and results, against bytes that the test computes itself.
#pragma once

#include "tests/emulator/runner.h"

namespace ptxrewrite::test {

// Prints the tested cases; returns the number of failed cases.
size_t test_memory_kinds(Way way);

} // namespace ptxrewrite::test
