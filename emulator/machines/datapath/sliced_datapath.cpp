#include "emulator/machines/datapath/sliced_datapath.h"

#include <algorithm>

namespace ptxrewrite::emulator {

void SlicedDatapath::pair_up() {
  counters_.paired += 2 * std::min(narrow_[0], narrow_[1]);
  if (all_[0] && all_[1]) {
    // Each side's share of 16-bit instructions is the chance that it has one ready; both have to.
    const double cycles = static_cast<double>(std::min(all_[0], all_[1]));
    counters_.paired_by_chance += 2 * cycles * (static_cast<double>(narrow_[0]) / static_cast<double>(all_[0])) *
                                  (static_cast<double>(narrow_[1]) / static_cast<double>(all_[1]));
  }
  all_ = narrow_ = {};
}

} // namespace ptxrewrite::emulator
