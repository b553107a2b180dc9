// Compares samples/benchmarks.tsv, the facts about the benchmarks' host code, with the samples.
#pragma once

namespace ptxrewrite::tests {

// Compares blocks and their number at --size paper, and flags of the compiler. Prints differences; false if any.
bool check_benchmarks();

} // namespace ptxrewrite::tests
