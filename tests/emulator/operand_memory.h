// The operand matrix of instructions on memory and of calls: kinds of addresses, of what is loaded and stored, and of
// what a call passes, against bytes that the test keeps itself.
#pragma once

#include "tests/emulator/runner.h"

namespace ptxrewrite::test {

// Prints what was tested; the number of cases that are wrong.
size_t test_memory_kinds(Way way);

} // namespace ptxrewrite::test
