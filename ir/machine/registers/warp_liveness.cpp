// Computes liveness per lane by backward dataflow, then adds the registers of waiting lanes; see warp_liveness.h.
#include "ir/machine/registers/warp_liveness.h"

#include <algorithm>

namespace ptxrewrite::ir {

WarpLiveness::WarpLiveness(const RegisterProgram& program)
    : program_(program), live_in_(program.blocks.size()), live_out_(live_in_), waiting_(live_in_),
      behind_(program.blocks.size()), soft_(behind_) {
  solve_lanes();
  find_waiting();
  walk_blocks();
}

void WarpLiveness::solve_lanes() {
  struct Summary {
    RegisterSet read, written; // read before any write in the block; written unconditionally
  };
  std::vector<Summary> summaries(program_.blocks.size());
  for (size_t b = 0; b < program_.blocks.size(); ++b)
    for (const RegisterInstruction& instruction : program_.blocks[b].instructions) {
      summaries[b].read |= instruction.reads & ~summaries[b].written;
      if (!instruction.guarded) summaries[b].written |= instruction.writes;
    }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = program_.blocks.size(); b-- > 0;) {
      RegisterSet out;
      for (uint32_t successor : program_.blocks[b].successors)
        out |= live_in_[successor];
      RegisterSet in = summaries[b].read | (out & ~summaries[b].written);
      changed |= in != live_in_[b];
      live_out_[b] = out;
      live_in_[b] = in;
    }
  }
}

void WarpLiveness::find_waiting() {
  std::vector<uint32_t> seen_by(program_.blocks.size()); // number of the path that came last
  uint32_t path = 0;
  for (const RegisterBlock& branch : program_.blocks) {
    if (!branch.diverges) continue;
    std::vector<uint32_t> starts = branch.successors;
    std::ranges::sort(starts);
    starts.erase(std::ranges::unique(starts).begin(), starts.end());
    const std::vector<RegisterSet> held = held_by_others(starts, branch.post_dominator);
    for (size_t i = 0; i < starts.size(); ++i)
      if (starts[i] != branch.post_dominator) wait(held[i], starts[i], branch.post_dominator, seen_by, ++path);
  }
}

// For each successor of a branch: what lanes need that took another one, or that wait at the meeting.
std::vector<RegisterSet> WarpLiveness::held_by_others(const std::vector<uint32_t>& starts, uint32_t meeting) const {
  std::vector<RegisterSet> held(starts.size());
  const RegisterSet at_meeting = meeting == RegisterBlock::none ? RegisterSet() : live_in_[meeting];
  RegisterSet earlier = at_meeting, later = at_meeting;
  for (size_t i = 0; i < starts.size(); ++i) {
    held[i] |= earlier;
    earlier |= live_in_[starts[i]];
  }
  for (size_t i = starts.size(); i-- > 0;) {
    held[i] |= later;
    later |= live_in_[starts[i]];
  }
  return held;
}

// Adds registers of waiting lanes to each block from `start` that executes before the meeting.
void WarpLiveness::wait(const RegisterSet& held, uint32_t start, uint32_t meeting, std::vector<uint32_t>& seen_by,
                        uint32_t path) {
  std::vector<uint32_t> work{start};
  seen_by[start] = path;
  while (!work.empty()) {
    const uint32_t here = work.back();
    work.pop_back();
    waiting_[here] |= held;
    for (uint32_t next : program_.blocks[here].successors) {
      if (next == meeting || seen_by[next] == path) continue;
      seen_by[next] = path;
      work.push_back(next);
    }
  }
}

void WarpLiveness::walk_blocks() {
  for (size_t b = 0; b < program_.blocks.size(); ++b) {
    const std::vector<RegisterInstruction>& instructions = program_.blocks[b].instructions;
    behind_[b].resize(instructions.size());
    soft_[b].resize(instructions.size());
    RegisterSet live = live_out_[b];
    for (size_t i = instructions.size(); i-- > 0;) {
      const RegisterInstruction& instruction = instructions[i];
      behind_[b][i] = live | waiting_[b];
      soft_[b][i] = instruction.writes & (instruction.guarded ? behind_[b][i] : waiting_[b]);
      if (!instruction.guarded) live &= ~instruction.writes;
      live |= instruction.reads;
    }
  }
}

bool is_soft_by_algorithm_2(const RegisterProgram& program, const WarpLiveness& liveness, uint32_t block,
                            unsigned register_number) {
  for (uint32_t dominator = program.blocks[block].dominator; dominator != RegisterBlock::none;
       dominator = program.blocks[dominator].dominator) {
    // Do its paths reconverge before the definition?
    bool meet = false;
    for (uint32_t post = program.blocks[dominator].post_dominator; post != RegisterBlock::none && !meet;
         post = program.blocks[post].post_dominator)
      meet = program.dominates(post, block);
    if (meet) continue;
    for (uint32_t successor : program.blocks[dominator].successors)
      if (!program.dominates(successor, block) && liveness.lane_live_in(successor).test(register_number)) return true;
  }
  return false;
}

} // namespace ptxrewrite::ir
