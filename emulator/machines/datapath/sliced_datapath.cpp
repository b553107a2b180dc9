#include "emulator/machines/datapath/sliced_datapath.h"

#include <algorithm>
#include <cmath>

namespace ptxrewrite::emulator {

namespace {

constexpr double ready_share = 0.5; // of resident warps

} // namespace

void SlicedDatapath::pair_up() {
  counters_.paired += 2 * std::min(narrow_[0], narrow_[1]);
  if (all_[0] && all_[1]) {
    // The share of 16-bit instructions of a side is the probability that it has one ready; a pair needs both.
    const double cycles = static_cast<double>(std::min(all_[0], all_[1]));
    const double share[] = {static_cast<double>(narrow_[0]) / static_cast<double>(all_[0]),
                            static_cast<double>(narrow_[1]) / static_cast<double>(all_[1])};
    counters_.paired_by_chance += 2 * cycles * share[0] * share[1];
    const auto warps_of_side = space_.warps / 2;
    const double ready = std::max(warps_of_side * ready_share, 1.0);
    const auto found = [&](double narrow) { return 1 - std::pow(1 - narrow, ready); };
    const double pairs = cycles * found(share[0]) * found(share[1]);
    counters_.paired_by_search += 2 * std::min(pairs, static_cast<double>(std::min(narrow_[0], narrow_[1])));
  }
  all_ = narrow_ = {};
}

} // namespace ptxrewrite::emulator
