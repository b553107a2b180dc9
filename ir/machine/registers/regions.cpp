// Algorithm 1 of RegLess, and the lifetimes of §4.3; see regions.h.
//
// In addition to the paper, a barrier ends its region: a warp that held entries while waiting could block those that it
// waits for. Splits use weights in machine instructions (the paper's 48 bytes are six). Their window ends where the
// first part would become invalid, and begins where a boundary separates the most loads from their first uses.
#include "ir/machine/registers/regions.h"

#include "ir/machine/registers/register_members.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

class BlockSplitter {
public:
  BlockSplitter(const RegisterProgram& program, const WarpLiveness& liveness, const RegionLimits& limits,
                uint32_t block)
      : instructions_(program.blocks[block].instructions), liveness_(liveness), limits_(limits), block_(block),
        first_use_(instructions_.size(), UINT32_MAX) {
    find_first_uses();
    find_borders_behind();
  }

  // Returns the ends of the regions.
  std::vector<uint32_t> run() {
    std::vector<uint32_t> ends;
    uint32_t begin = 0, size = static_cast<uint32_t>(instructions_.size());
    while (begin < size) {
      uint32_t valid_end = longest_valid(begin);
      const bool is_whole = valid_end == size || instructions_[valid_end - 1].waits;
      uint32_t end = is_whole ? valid_end : split_point(begin, valid_end);
      ends.push_back(end);
      begin = end;
    }
    return ends;
  }

private:
  // For each long-latency load, finds the first instruction of the block that reads or overwrites its result.
  void find_first_uses() {
    std::vector<uint32_t> next_access(RegisterSet().size(), UINT32_MAX); // by register, behind instruction i
    for (auto i = static_cast<uint32_t>(instructions_.size()); i-- > 0;) {
      const RegisterInstruction& instruction = instructions_[i];
      if (instruction.long_latency)
        for (uint16_t number : RegisterMembers(instruction.writes))
          first_use_[i] = std::min(first_use_[i], next_access[number]);
      const RegisterSet accessed = instruction.reads | instruction.writes;
      for (uint16_t number : RegisterMembers(accessed))
        next_access[number] = i;
    }
  }

  // The end of the longest valid region from `begin`; at least one instruction.
  uint32_t longest_valid(uint32_t begin) const {
    RegisterSet inputs, written;
    RegisterSet held;                // by the staging unit, after the last instruction
    uint32_t first_use = UINT32_MAX; // of the result of a load in the region
    uint32_t end = begin;
    for (; end < instructions_.size() && end < first_use; ++end) {
      RegisterSet preloaded = preloads(end) & ~written & ~inputs;
      inputs |= preloaded;
      // Inputs are held from the region's start: a new one requires checking all previous instructions again.
      if (preloaded.any()) held = inputs;
      bool valid = true;
      for (uint32_t i = preloaded.any() ? begin : end; i <= end && valid; ++i)
        valid = step(i, held);
      if (!valid) {
        end += end == begin ? 1 : 0;
        break;
      }
      written |= instructions_[end].writes;
      first_use = std::min(first_use, first_use_[end]);
      if (instructions_[end].waits) return end + 1;
    }
    return end;
  }

  // Registers whose contents an instruction needs.
  RegisterSet preloads(uint32_t i) const { return instructions_[i].reads | liveness_.soft(block_, i); }

  // Updates the held registers from before to after an instruction; returns false if they exceed the limits in between.
  bool step(uint32_t i, RegisterSet& held) const {
    const RegisterInstruction& instruction = instructions_[i];
    held |= instruction.writes | instruction.temporaries;
    bool valid = within_limits(held);
    held &= liveness_.live_behind(block_, i) | ~(instruction.reads | instruction.writes | instruction.temporaries);
    return valid;
  }

  bool within_limits(const RegisterSet& held) const {
    if (held.count() > limits_.live) return false;
    std::array<uint32_t, staging_banks> banks{};
    for (uint32_t r = 0; r < held.size(); ++r)
      if (held.test(r) && ++banks[r % staging_banks] > limits_.per_bank) return false;
    return true;
  }

  // `upper` is the latest end of the first part.
  uint32_t split_point(uint32_t begin, uint32_t upper) const {
    uint32_t lower = best_for_loads(begin, upper);
    uint32_t long_enough = begin;
    for (uint32_t weight = 0; long_enough < upper && weight < limits_.least_instructions;)
      weight += instructions_[long_enough++].weight;
    lower = std::min(std::max(long_enough, lower), upper);
    const std::vector<uint32_t> first = borders_of_first(begin, upper);
    uint32_t best = lower, fewest = UINT32_MAX;
    for (uint32_t at = lower; at <= upper; ++at) {
      uint32_t borders = first[at - begin] + borders_behind_[at];
      if (borders > fewest) continue;
      fewest = borders;
      best = at; // the last of equal ones: fewer regions
    }
    return best;
  }

  // The first boundary that separates the most loads from their first uses.
  uint32_t best_for_loads(uint32_t begin, uint32_t upper) const {
    std::vector<int> change(upper - begin + 2);
    for (uint32_t i = begin; i < upper; ++i) {
      if (first_use_[i] == UINT32_MAX) continue;
      ++change[i + 1 - begin];
      if (first_use_[i] < upper) --change[first_use_[i] + 1 - begin];
    }
    uint32_t best = begin + 1;
    int parted = 0, most = -1;
    for (uint32_t at = begin + 1; at <= upper; ++at) {
      parted += change[at - begin];
      if (parted <= most) continue;
      most = parted;
      best = at;
    }
    return best;
  }

  // Number of inputs and outputs of [begin, at) for each `at` from begin to upper.
  std::vector<uint32_t> borders_of_first(uint32_t begin, uint32_t upper) const {
    std::vector<uint32_t> result(upper - begin + 1);
    RegisterSet inputs, written;
    for (uint32_t i = begin; i < upper; ++i) {
      inputs |= preloads(i) & ~written;
      written |= instructions_[i].writes;
      result[i + 1 - begin] =
          static_cast<uint32_t>(inputs.count() + (written & liveness_.live_behind(block_, i)).count());
    }
    return result;
  }

  // Number of inputs and outputs of [at, size), for each `at`.
  void find_borders_behind() {
    borders_behind_.resize(instructions_.size() + 1);
    RegisterSet inputs, written;
    const RegisterSet live = liveness_.live_out(block_);
    for (auto i = static_cast<uint32_t>(instructions_.size()); i-- > 0;) {
      written |= instructions_[i].writes;
      inputs = (inputs & ~instructions_[i].writes) | preloads(i);
      borders_behind_[i] = static_cast<uint32_t>(inputs.count() + (written & live).count());
    }
  }

  const std::vector<RegisterInstruction>& instructions_;
  const WarpLiveness& liveness_;
  const RegionLimits& limits_;
  uint32_t block_;
  std::vector<uint32_t> first_use_;
  std::vector<uint32_t> borders_behind_;
};

// Computes all metadata of a region except the invalidations.
void annotate(Region& region, const RegisterProgram& program, const WarpLiveness& liveness) {
  const std::vector<RegisterInstruction>& instructions = program.blocks[region.block].instructions;
  RegisterSet written, accessed_later;
  for (uint32_t i = region.begin; i < region.end; ++i) {
    const RegisterInstruction& instruction = instructions[i];
    region.weight += instruction.weight;
    region.inputs |= (instruction.reads | liveness.soft(region.block, i)) & ~written;
    written |= instruction.writes;
  }
  const RegisterSet& behind = liveness.live_behind(region.block, region.end - 1);
  region.outputs = written & behind;
  region.last_reads = region.inputs & (~behind | written);
  region.interior = written & ~region.inputs & ~behind;
  size_t count = region.end - region.begin;
  region.erased.resize(count);
  region.evicted.resize(count);
  for (uint32_t i = region.end; i-- > region.begin;) {
    RegisterSet accessed = instructions[i].reads | instructions[i].writes;
    const RegisterSet& needed = liveness.live_behind(region.block, i);
    region.erased[i - region.begin] = accessed & ~needed;
    region.evicted[i - region.begin] = accessed & needed & ~accessed_later;
    accessed_later |= accessed;
  }
  RegisterSet held = region.inputs, late; // loaded values arrive after the region and keep their entries until its end
  for (uint32_t i = region.begin; i < region.end; ++i) {
    if (instructions[i].long_latency) late |= instructions[i].writes;
    held |= instructions[i].writes | instructions[i].temporaries;
    region.live = std::max(region.live, static_cast<uint32_t>(held.count()));
    std::array<uint8_t, staging_banks> banks{};
    for (uint32_t r = 0; r < held.size(); ++r)
      if (held.test(r)) ++banks[r % staging_banks];
    for (size_t bank = 0; bank < staging_banks; ++bank)
      region.banks[bank] = std::max(region.banks[bank], banks[bank]);
    held &= ~(region.erased[i - region.begin] | region.evicted[i - region.begin]) | late;
    held &= liveness.live_behind(region.block, i) | ~instructions[i].temporaries;
  }
}

// One path of a divergent branch: its first block, and the blocks at which lanes end or wait for those of other paths.
struct BranchPath {
  uint32_t start = 0;
  std::vector<uint32_t> ends;
};

// The paths of each divergent branch. There are transitions in addition to edges: at the end of one path lanes of
// another one start or continue, with the copies that the former lanes have left outside of the unit.
std::vector<std::vector<BranchPath>> divergent_paths(const RegisterProgram& program) {
  std::vector<std::vector<BranchPath>> result;
  std::vector<uint32_t> seen_by(program.blocks.size()); // number of the path that came last
  uint32_t number = 0;
  for (const RegisterBlock& branch : program.blocks) {
    if (!branch.diverges) continue;
    std::vector<uint32_t> starts = branch.successors;
    std::ranges::sort(starts);
    starts.erase(std::ranges::unique(starts).begin(), starts.end());
    std::erase(starts, branch.post_dominator);
    if (starts.size() < 2) continue;
    std::vector<BranchPath>& paths = result.emplace_back();
    for (uint32_t start : starts) {
      BranchPath& path = paths.emplace_back(BranchPath{start, {}});
      std::vector<uint32_t> work{start};
      seen_by[start] = ++number;
      while (!work.empty()) {
        const uint32_t here = work.back();
        work.pop_back();
        bool ends = program.blocks[here].successors.empty();
        for (uint32_t next : program.blocks[here].successors) {
          ends |= next == branch.post_dominator;
          if (next == branch.post_dominator || seen_by[next] == number) continue;
          seen_by[next] = number;
          work.push_back(next);
        }
        if (ends) path.ends.push_back(here);
      }
    }
  }
  return result;
}

bool add_registers(RegisterSet& to, const RegisterSet& registers) {
  const RegisterSet before = to;
  to |= registers;
  return to != before;
}

// Dataflow between the paths of a divergent branch: registers that may have a stored copy at the end of one path may
// have it at the start of every other path. Returns true if the set of a start has grown.
bool pass_between_paths(const std::vector<BranchPath>& paths, const std::vector<RegisterSet>& stored_out,
                        std::vector<RegisterSet>& stored_in) {
  std::vector<RegisterSet> at_ends(paths.size());
  for (size_t i = 0; i < paths.size(); ++i)
    for (uint32_t end : paths[i].ends)
      at_ends[i] |= stored_out[end];
  bool changed = false;
  RegisterSet earlier, later;
  for (size_t i = 0; i < paths.size(); ++i) {
    changed |= add_registers(stored_in[paths[i].start], earlier);
    earlier |= at_ends[i];
  }
  for (size_t i = paths.size(); i-- > 0;) {
    changed |= add_registers(stored_in[paths[i].start], later);
    later |= at_ends[i];
  }
  return changed;
}

// Determines which registers may have a copy outside of the unit when a region starts, and which copies it deletes.
void find_invalidations(std::vector<Region>& regions, const RegisterProgram& program, const WarpLiveness& liveness) {
  std::vector<RegisterSet> stored_in(program.blocks.size()), stored_out(program.blocks.size());
  const std::vector<std::vector<BranchPath>> branches = divergent_paths(program);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = 0; b < program.blocks.size(); ++b) {
      if (program.blocks[b].instructions.empty()) stored_out[b] = stored_in[b];
      for (uint32_t follower : program.blocks[b].successors)
        changed |= add_registers(stored_in[follower], stored_out[b]);
    }
    for (const std::vector<BranchPath>& paths : branches)
      changed |= pass_between_paths(paths, stored_out, stored_in);
    RegisterSet stored;
    for (size_t i = 0; i < regions.size(); ++i) {
      Region& region = regions[i];
      if (region.begin == 0) stored = stored_in[region.block];
      RegisterSet needed =
          region.begin == 0 ? liveness.live_in(region.block) : liveness.live_behind(region.block, region.begin - 1);
      region.invalidated = stored & ~needed;
      stored = (stored & needed & ~region.last_reads) | region.outputs | (region.inputs & ~region.last_reads);
      bool last = i + 1 == regions.size() || regions[i + 1].block != region.block;
      if (!last) continue;
      changed |= stored_out[region.block] != stored;
      stored_out[region.block] = stored;
    }
  }
}

} // namespace

std::vector<Region> create_regions(const RegisterProgram& program, const WarpLiveness& liveness,
                                   const RegionLimits& limits) {
  std::vector<Region> regions;
  for (uint32_t block = 0; block < program.blocks.size(); ++block) {
    uint32_t begin = 0;
    for (uint32_t end : BlockSplitter(program, liveness, limits, block).run()) {
      Region& region = regions.emplace_back();
      region.block = block;
      region.begin = begin;
      region.end = begin = end;
      annotate(region, program, liveness);
    }
  }
  find_invalidations(regions, program, liveness);
  return regions;
}

uint32_t metadata_instructions(const Region& region) {
  auto entries = static_cast<uint32_t>(region.inputs.count() + region.invalidated.count());
  if (entries <= 2 && region.weight <= 4) return 1;
  uint32_t further = entries > 3 ? (entries - 3 + 5) / 6 : 0;
  return 1 + further + (region.weight + 8) / 9;
}

} // namespace ptxrewrite::ir
