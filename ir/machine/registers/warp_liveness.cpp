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
  for (uint32_t b = 0; b < program_.blocks.size(); ++b)
    if (program_.blocks[b].diverges) wait_at(b);
}

// Adds registers of lanes that took another successor to each block that executes before reconvergence.
void WarpLiveness::wait_at(uint32_t branch) {
  const RegisterBlock& block = program_.blocks[branch];
  uint32_t meeting = block.post_dominator;
  for (uint32_t way : block.successors) {
    if (way == meeting) continue;
    RegisterSet held = meeting == RegisterBlock::none ? RegisterSet() : live_in_[meeting];
    for (uint32_t other : block.successors)
      if (other != way) held |= live_in_[other];
    std::vector<bool> seen(program_.blocks.size());
    std::vector<uint32_t> work{way};
    seen[way] = true;
    while (!work.empty()) {
      uint32_t here = work.back();
      work.pop_back();
      waiting_[here] |= held;
      for (uint32_t next : program_.blocks[here].successors) {
        if (next == meeting || seen[next]) continue;
        seen[next] = true;
        work.push_back(next);
      }
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
