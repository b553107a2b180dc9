// samples/benchmarks.tsv, what the benchmarks' host code says, against the samples.
#pragma once

namespace ptxrewrite::tests {

// Blocks and how many there are at --size paper, flags of the compiler. Says what differs; false: something does.
bool check_benchmarks();

} // namespace ptxrewrite::tests
