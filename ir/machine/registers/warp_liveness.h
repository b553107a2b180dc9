// Registers of a warp that any of its lanes reads later, and writes that preserve part of a register's old contents
// (RegLess §4.4).
//
// A register of a warp holds a value per lane, and lanes diverge at branches. While some lanes execute between a
// divergent branch and its reconvergence point, the others wait: at the start of another successor of the branch, or
// already at the reconvergence point. Registers that are live there are live for the warp, too.
//
// A definition is soft if some lane can be inactive at it while its old value is live: lanes whose guard is false
// although the register is read later, or waiting lanes. The paper's Algorithm 2 finds fewer of them: it considers only
// registers live on the other successors of dominating branches, so it misses guards, single-block loops that lanes
// leave one by one, and lanes that have already executed their path.
#pragma once

#include "ir/machine/registers/register_program.h"

namespace ptxrewrite::ir {

class WarpLiveness {
public:
  explicit WarpLiveness(const RegisterProgram& program);

  // Live in a lane that executes the block.
  const RegisterSet& lane_live_in(uint32_t block) const { return live_in_[block]; }
  const RegisterSet& lane_live_out(uint32_t block) const { return live_out_[block]; }
  // Live in lanes that may wait elsewhere while others execute the block.
  const RegisterSet& waiting(uint32_t block) const { return waiting_[block]; }

  RegisterSet live_in(uint32_t block) const { return live_in_[block] | waiting_[block]; }
  RegisterSet live_out(uint32_t block) const { return live_out_[block] | waiting_[block]; }
  // Live after the instruction in any lane of the warp.
  const RegisterSet& live_behind(uint32_t block, uint32_t instruction) const { return behind_[block][instruction]; }
  // Registers written there that keep old contents in some lane.
  const RegisterSet& soft(uint32_t block, uint32_t instruction) const { return soft_[block][instruction]; }

private:
  void solve_lanes();
  void find_waiting();
  std::vector<RegisterSet> held_by_others(const std::vector<uint32_t>& starts, uint32_t meeting) const;
  void wait(const RegisterSet& held, uint32_t start, uint32_t meeting, std::vector<uint32_t>& seen_by, uint32_t path);
  void walk_blocks();

  const RegisterProgram& program_;
  std::vector<RegisterSet> live_in_, live_out_, waiting_;
  std::vector<std::vector<RegisterSet>> behind_, soft_;
};

// The paper's Algorithm 2, for one register that an instruction of the block writes.
bool is_soft_by_algorithm_2(const RegisterProgram& program, const WarpLiveness& liveness, uint32_t block,
                            unsigned register_number);

} // namespace ptxrewrite::ir
