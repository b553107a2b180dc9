#include "emulator/hardware/sliced_datapath.h"

#include <algorithm>

namespace ptxrewrite::emulator {

bool SlicedDatapath::issue(uint32_t warp, std::span<const HardwareRegister> sources, bool capable, uint64_t count) {
  bool all = capable;
  for (const HardwareRegister& source : sources) {
    const bool is_half_wide = is_half(warp, source);
    all = all && is_half_wide;
    if (!source.in_file) continue;
    counters_.reads += source.words;
    if (is_half_wide) counters_.half_reads += source.words;
  }
  all_[warp % 2] += count;
  if (!all) return false;
  narrow_[warp % 2] += count;
  counters_.narrow += count;
  return true;
}

void SlicedDatapath::write(uint32_t warp, std::span<const WrittenValue> values, bool all_lanes, bool is_narrow,
                           uint64_t count) {
  bool fits = true;
  for (const WrittenValue& value : values) {
    if (value.destination.words == 0) continue;
    uint8_t& bits = bits_[space_.place_of(warp, value.destination)];
    const auto now = static_cast<uint8_t>(value.narrow ? half | (value.negative ? negative : 0) : 0);
    const bool stays = value.narrow && (all_lanes || bits == now);
    if (value.destination.in_file) {
      if (!stays && (bits & half) && !all_lanes) counters_.expansions += value.destination.words;
      counters_.writes += value.destination.words;
      if (stays) counters_.half_writes += value.destination.words;
    }
    bits = stays ? now : 0;
    fits = fits && value.narrow;
  }
  if (is_narrow && !fits) counters_.stalls += count;
}

void SlicedDatapath::start(uint32_t warp) {
  const auto first = bits_.begin() + static_cast<ptrdiff_t>(warp * space_.per_warp());
  std::fill_n(first, space_.per_warp(), uint8_t(0));
}

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
