// Checks regions and their marks against the behaviour of a staging unit. Rules:
//
//   1. The regions of a block cover its instructions, in order and once.
//   2. A region of more than one instruction respects the limits: entries held at one time, in total and per bank.
//   3. It does not contain a long-latency load together with the first read or overwrite of its result.
//   4. Registers that an instruction reads or partially writes are held: preloaded or written before, and not released.
//   5. Each entry is released once: erased if dead in all lanes, evicted if live; no entry remains at the end.
//   6. The stored copy is dropped exactly for inputs that are dead after the region or that it writes; invalidated
//      registers are dead in all lanes from the region's start on.
//   7. A barrier is the last instruction of its region.
#include "ir/machine/registers/regions.h"

#include <string>

namespace ptxrewrite::ir {

namespace {

class RegionVerifier {
public:
  RegionVerifier(const RegisterProgram& program, const WarpLiveness& liveness, const RegionLimits& limits)
      : program_(program), liveness_(liveness), limits_(limits) {}

  std::vector<std::string> run(const std::vector<Region>& regions) {
    std::vector<uint32_t> next(program_.blocks.size());
    for (const Region& region : regions) {
      where_ = "block " + std::to_string(region.block) + ", region [" + std::to_string(region.begin) + ", " +
               std::to_string(region.end) + ")";
      require(region.begin == next[region.block] && region.end > region.begin, "does not follow the one before");
      next[region.block] = region.end;
      if (region.end > program_.blocks[region.block].instructions.size()) {
        require(false, "ends outside of its block");
        continue;
      }
      check_loads(region);
      check_entries(region);
    }
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      where_ = "block " + std::to_string(b);
      require(next[b] == program_.blocks[b].instructions.size(), "is not covered by regions");
    }
    return std::move(errors_);
  }

private:
  void require(bool holds, const std::string& what) {
    if (!holds && errors_.size() < 20) errors_.push_back(where_ + ": " + what);
  }

  void check_loads(const Region& region) {
    const auto& instructions = program_.blocks[region.block].instructions;
    RegisterSet late;
    for (uint32_t i = region.begin; i < region.end; ++i) {
      RegisterSet touched = instructions[i].reads | instructions[i].writes;
      require((late & touched).none(), "a load and its first use");
      if (instructions[i].long_latency) late |= instructions[i].writes;
      require(!instructions[i].waits || i + 1 == region.end, "goes on behind a barrier");
    }
  }

  void check_entries(const Region& region) {
    const auto& instructions = program_.blocks[region.block].instructions;
    RegisterSet held = region.inputs;
    for (uint32_t i = region.begin; i < region.end; ++i) {
      const RegisterInstruction& instruction = instructions[i];
      const RegisterSet& erased = region.erased[i - region.begin];
      const RegisterSet& evicted = region.evicted[i - region.begin];
      RegisterSet needed = liveness_.live_behind(region.block, i);
      require((instruction.reads & ~held).none(), "reads what is not held");
      require((liveness_.soft(region.block, i) & ~held).none(), "writes a part of what is not held");
      held |= instruction.writes;
      check_limits(region, held | instruction.temporaries);
      require((erased & ~held).none() && (evicted & ~held).none(), "releases what is not held");
      require((erased & needed).none(), "erases what some lane needs");
      require((evicted & ~needed).none(), "evicts what no lane needs");
      held &= ~(erased | evicted);
    }
    require(held.none(), "leaves entries at its end");
    RegisterSet written;
    for (uint32_t i = region.begin; i < region.end; ++i)
      written |= instructions[i].writes;
    require((region.last_reads & liveness_.live_behind(region.block, region.end - 1) & ~written).none(),
            "drops the copy of what some lane needs behind it");
    RegisterSet needed =
        region.begin == 0 ? liveness_.live_in(region.block) : liveness_.live_behind(region.block, region.begin - 1);
    require((region.invalidated & needed).none(), "invalidates what some lane needs");
  }

  void check_limits(const Region& region, const RegisterSet& held) {
    require(held.count() <= region.live, "needs more entries than it says");
    for (uint32_t bank = 0; bank < staging_banks; ++bank) {
      uint32_t count = 0;
      for (uint32_t r = bank; r < held.size(); r += staging_banks)
        count += held.test(r) ? 1 : 0;
      require(count <= region.banks[bank], "needs more entries of a bank than it says");
      if (region.end - region.begin > 1) require(count <= limits_.per_bank, "needs too many entries of a bank");
    }
    if (region.end - region.begin > 1) require(held.count() <= limits_.live, "needs too many entries");
  }

  const RegisterProgram& program_;
  const WarpLiveness& liveness_;
  const RegionLimits& limits_;
  std::string where_;
  std::vector<std::string> errors_;
};

} // namespace

std::vector<std::string> verify_regions(const RegisterProgram& program, const WarpLiveness& liveness,
                                        const std::vector<Region>& regions, const RegionLimits& limits) {
  return RegionVerifier(program, liveness, limits).run(regions);
}

} // namespace ptxrewrite::ir
