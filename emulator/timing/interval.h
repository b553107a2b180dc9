// The formulas of interval analysis, one small function each (spec: time by intervals). They are independent of kernels
// and machines. Times are SM clocks; issue rates are instructions per scheduler and clock.
//
// An interval is a run of `issued` instructions without a wait, followed by a wait of `stall` clocks.
//
// There is no function for achieved bandwidth, which saturates as B = ((in flight / L)^-p + Bmax^-p)^(-1/p) with bytes
// in flight, latency L and p = 3. The time for n bytes, n / B, is the smooth sum of n L / in flight, which is the
// memory wait in a warp's walk, and of n / Bmax, which is the demand on DRAM: the time of a wave adds up exactly these
// two, so using B instead of Bmax there would count the wait twice.
#pragma once

#include <cstdint>
#include <span>

namespace ptxrewrite::timing {

enum class Policy : uint8_t { greedy_then_oldest, round_robin };

inline constexpr double smoothness = 3; // q: the larger, the closer smooth_sum is to the maximum

// The warps of a scheduler from the view of one of them.
struct Company {
  double warps = 1;             // of the scheduler, this one included
  double issue_probability = 1; // of a warp at any clock: sum of issued / (sum of issued + sum of stalls)
  double mean_issued = 0;       // per interval
};

double issue_probability(double issued, double stalls);

// The number of instructions that the other warps issue while this warp waits `stall` clocks.
double hidden_instructions(Policy policy, double stall, const Company& company);
// The clocks in which they issue between two intervals of this warp, whether it waits or not.
double others_issue_clocks(Policy policy, double issued, double rate, const Company& company);
// The part of a wait that other warps do not hide.
double exposed_stall(double stall, double hidden, double rate);

// (sum of terms^q)^(1/q): the largest of several bounds, and somewhat more if others are close to it.
double smooth_sum(std::span<const double> terms, double q = smoothness);
// The value that smooth_sum adds to `part` to give `whole`; 0 if `whole` does not exceed `part`. The latency part
// of an interval walk is its time beyond its issue slots and units: a kernel that only issues costs its issue
// time, a chain of dependent instructions its latencies. A unit counts beyond the issue slots of its
// instructions.
double beyond(double whole, double part, double q = smoothness);

// The number of additional latencies if all warps together have `misses` in one interval and `capacity` of them can be
// outstanding (MSHRs).
double further_batches(double misses, double capacity);

// Launch overhead: a constant and the distribution of blocks.
double launch_clocks(double blocks, double per_block, double constant);

} // namespace ptxrewrite::timing
