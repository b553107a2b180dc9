// The formulas of interval analysis, one small function each (spec: time by intervals). Nothing here knows of kernels:
// numbers in, numbers out. Times are SM clocks; issue rates are instructions per scheduler and clock.
//
// An interval is what a warp issues without waiting, and the wait behind it: `issued` instructions, `stall` clocks.
//
// There is no function for achieved bandwidth, which saturates as B = ((in flight / L)^-p + Bmax^-p)^(-1/p) with bytes
// in flight, latency L and p = 3. The time for n bytes, n / B, is the smooth sum of n L / in flight, which is what the
// walk of a warp waits for memory, and of n / Bmax, which is DRAM's demand: exactly what the time of a wave adds up, so
// that taking B for Bmax there would count the wait twice.
#pragma once

#include <cstdint>
#include <span>

namespace ptxrewrite::timing {

enum class Policy : uint8_t { greedy_then_oldest, round_robin };

inline constexpr double smoothness = 3; // q: how sharply the largest of several bounds wins

// The other warps of a scheduler, as one warp sees them.
struct Company {
  double warps = 1;             // of the scheduler, this one included
  double issue_probability = 1; // of a warp at any clock: sum of issued / (sum of issued + sum of stalls)
  double mean_issued = 0;       // by interval
};

double issue_probability(double issued, double stalls);

// What the others issue while this warp waits `stall` clocks, in instructions.
double hidden_instructions(Policy policy, double stall, const Company& company);
// What they issue between two of this warp's intervals, whether it waits or not, in clocks.
double others_issue_clocks(Policy policy, double issued, double rate, const Company& company);
// What is left of a wait.
double exposed_stall(double stall, double hidden, double rate);

// (sum of terms^q)^(1/q): the largest of several bounds, and somewhat more where others come near.
double smooth_sum(std::span<const double> terms, double q = smoothness);
// What `whole` has beyond `part`, so that smooth_sum of both is `whole` again; 0 where there is nothing beyond. The
// latency part of an interval walk is what it has beyond its issue slots and units: a kernel that only issues costs its
// issue time, a chain of dependent instructions its latencies. A unit counts beyond the issue slots of its
// instructions.
double beyond(double whole, double part, double q = smoothness);

// Misses that all warps make in one interval, when there are registers (MSHRs) for `capacity` at a time: how many
// latencies pass beyond the first.
double further_batches(double misses, double capacity);

// Constant start-up and what distributing blocks takes.
double launch_clocks(double blocks, double per_block, double constant);

} // namespace ptxrewrite::timing
