#include "emulator/hardware/scalar_unit.h"

#include <algorithm>

namespace ptxrewrite::emulator {

bool ScalarUnit::issue(uint32_t warp, std::span<const HardwareRegister> sources, bool capable, uint64_t count) {
  bool all = capable;
  for (const HardwareRegister& source : sources) {
    const bool scalar = is_scalar(warp, source);
    if (source.in_file) (scalar ? counters_.scalar_reads : counters_.vector_reads) += source.words;
    all = all && scalar;
  }
  if (all) counters_.issued += count;
  return all;
}

bool ScalarUnit::write(uint32_t warp, HardwareRegister destination, bool all_lanes, bool equal) {
  uint8_t& bit = bits_[space_.place_of(warp, destination)];
  const bool scalar = all_lanes && equal && has_entry(warp, destination);
  if (destination.in_file) {
    if (bit && !all_lanes) counters_.expansions += destination.words;
    (scalar ? counters_.scalar_writes : counters_.vector_writes) += destination.words;
  }
  bit = scalar;
  return scalar;
}

void ScalarUnit::start(uint32_t warp) {
  const auto first = bits_.begin() + static_cast<ptrdiff_t>(warp * space_.per_warp());
  std::fill_n(first, space_.per_warp(), uint8_t(0));
}

} // namespace ptxrewrite::emulator
