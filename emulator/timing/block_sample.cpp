#include "emulator/timing/block_sample.h"

namespace ptxrewrite::timing {
namespace {

// Student's t for 95 % and this many degrees of freedom, expanded about z of the normal distribution (Abramowitz and
// Stegun, 26.7.5, first term): 0.6 % low at 15.
double quantile_of_student(double freedom) {
  constexpr double z = 1.959964;
  return z + (z * z * z + z) / (4 * freedom);
}

uint64_t times(uint64_t count, double factor) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(count) * factor));
}

} // namespace

// Welford's method.
void BlockSample::add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
}

double BlockSample::bound(uint64_t blocks) const {
  if (count_ >= blocks) return 0;
  if (count_ < 2) return HUGE_VAL;
  if (mean_ <= 0) return 0;
  const auto size = static_cast<double>(count_), all = static_cast<double>(blocks);
  const double deviation = std::sqrt(squares_ / (size - 1));
  return quantile_of_student(size - 1) * deviation / (mean_ * std::sqrt(size)) * std::sqrt((all - size) / (all - 1));
}

emulator::Counters counts_of_all(const emulator::Counters& some, uint64_t ran, uint64_t blocks) {
  emulator::Counters all = some;
  if (ran == 0) return all;
  const double factor = static_cast<double>(blocks) / static_cast<double>(ran);
  for (emulator::FunctionCounters& function : all.functions)
    for (emulator::InstructionCounters& counts : function.instructions)
      counts = {times(counts.executions, factor), times(counts.lanes, factor), times(counts.guarded_off, factor),
                times(counts.transactions, factor)};
  all.warp_instructions = times(some.warp_instructions, factor);
  all.thread_instructions = times(some.thread_instructions, factor);
  all.blocks = times(some.blocks, factor);
  all.warps = times(some.warps, factor);
  return all;
}

} // namespace ptxrewrite::timing
