// The sliced datapath of composite-hpca13 §5: registers whose upper halves are a sign or zero extension are accessed by
// halves, and two instructions with only such registers, one of an odd and one of an even warp, are issued together.
//
// The rules (§5.2):
//  * A register of a warp has two bits: HB, the 16 upper bits of all lanes are the same, all 0 or all 1; and SE, their
//    value. The comparison stage sets both on a write. A partial write keeps HB if the written lanes have the same
//    extension; else the upper halves of the other lanes are filled in from SE: an expansion.
//  * A 16-bit instruction is one whose source registers all have HB and whose constants fit, too. If its result needs
//    32 bits, the pipeline stalls for a cycle.
//  * Odd warps store the two halves of their registers swapped, so that two 16-bit instructions, one of an even and one
//    of an odd warp, access different banks, and are issued in the same cycle if both are ready.
// The number of pairs depends on timing, which is not modelled; there are two bounds: all possible pairs (the smaller
// number of 16-bit instructions of the two sides), and the pairs of two schedulers that go round their warps without
// looking for a partner (by chance). Between them are schedulers that issue a 16-bit instruction if any of their ready
// warps has one ("if both schedulers have 16-bit precision instructions that are ready", §5.2): half of the resident
// warps are assumed to be ready, a guess.
#pragma once

#include "emulator/machines/datapath/scalar_unit.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ptxrewrite::emulator {

struct SlicedCounters {
  uint64_t half_reads = 0, half_writes = 0; // words of whole warps of which only 16 bits are accessed
  uint64_t reads = 0, writes = 0;           // all accesses
  uint64_t expansions = 0;
  uint64_t narrow = 0;         // 16-bit instructions
  uint64_t stalls = 0;         // of them, those whose result does not fit
  uint64_t paired = 0;         // instructions issued with another one, if all partners are found
  double paired_by_chance = 0; // if pairs occur by chance
  double paired_by_search = 0; // if each side searches its ready warps for a partner
};

// The properties of a value that a warp writes.
struct WrittenValue {
  HardwareRegister destination;
  bool narrow = false;   // the upper bits of all written lanes are the same extension
  bool negative = false; // the extension is 1
};

class SlicedDatapath {
public:
  // Predicates have no halves.
  explicit SlicedDatapath(const RegisterSpace& space) : space_(space), bits_(space.size()) {}

  // `capable`: constants fit 16 bits, and the instruction runs on the sliced units; `count` machine instructions.
  // Returns whether it is a 16-bit instruction. Counters are scaled by `times`.
  bool issue(uint32_t warp, std::span<const HardwareRegister> sources, bool capable, uint64_t count,
             uint64_t times = 1) {
    bool all = capable;
    for (const HardwareRegister& source : sources) {
      const bool is_half_wide = is_half(warp, source);
      all = all && is_half_wide;
      if (!source.in_file) continue;
      counters_.reads += source.words * times;
      if (is_half_wide) counters_.half_reads += source.words * times;
    }
    all_[warp % 2] += count * times;
    if (!all) return false;
    narrow_[warp % 2] += count * times;
    counters_.narrow += count * times;
    return true;
  }
  // Writes the results. `is_narrow`: the return value of `issue`.
  void write(uint32_t warp, std::span<const WrittenValue> values, bool all_lanes, bool is_narrow, uint64_t count,
             uint64_t times = 1) {
    bool fits = true;
    for (const WrittenValue& value : values) {
      if (value.destination.words == 0) continue;
      uint8_t& bits = bits_[space_.place_of(warp, value.destination)];
      const auto now = static_cast<uint8_t>(value.narrow ? half | (value.negative ? negative : 0) : 0);
      const bool stays = value.narrow && (all_lanes || bits == now);
      if (value.destination.in_file) {
        if (!stays && (bits & half) && !all_lanes) counters_.expansions += value.destination.words * times;
        counters_.writes += value.destination.words * times;
        if (stays) counters_.half_writes += value.destination.words * times;
      }
      bits = stays ? now : 0;
      fits = fits && value.narrow;
    }
    if (is_narrow && !fits) counters_.stalls += count * times;
  }
  bool is_half(uint32_t warp, HardwareRegister of) const {
    return of.words == 0 || (bits_[space_.place_of(warp, of)] & half) != 0;
  }
  void start(uint32_t warp) {
    const auto first = bits_.begin() + static_cast<ptrdiff_t>(warp * space_.per_warp());
    std::fill_n(first, space_.per_warp(), uint8_t(0));
  }
  // Ends a batch: the warps that ran until now are not paired with later ones.
  void pair_up();

  const SlicedCounters& counters() const { return counters_; }

private:
  static constexpr uint8_t half = 1, negative = 2;

  RegisterSpace space_;
  std::vector<uint8_t> bits_;
  std::array<uint64_t, 2> all_{}, narrow_{}; // instructions of even and odd warps since the last pair_up
  SlicedCounters counters_;
};

} // namespace ptxrewrite::emulator
