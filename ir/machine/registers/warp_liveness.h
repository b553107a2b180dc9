// Which registers of a warp are needed later by any of its lanes, and which writes leave something of what the register
// held (RegLess §4.4).
//
// A register of a warp holds a value per lane, and lanes part at branches. While some lanes run between a divergent
// branch and the place where its ways meet again, the others wait: at the beginning of another way out of the branch,
// or already at the meeting place. What is live there is live for the warp, too.
//
// A definition is soft if some lane can be inactive at it while its old value is live: under a guard that is false
// although the register is read behind, or waiting. The paper's Algorithm 2 finds fewer of them: it looks at what is
// live on the other ways out of dominating branches alone, so it misses guards, loops of one block that lanes leave one
// by one, and lanes that have been through their way before.
#pragma once

#include "ir/machine/registers/register_program.h"

namespace ptxrewrite::ir {

class WarpLiveness {
public:
  explicit WarpLiveness(const RegisterProgram& program);

  // Of a lane that runs there.
  const RegisterSet& lane_live_in(uint32_t block) const { return live_in_[block]; }
  const RegisterSet& lane_live_out(uint32_t block) const { return live_out_[block]; }
  // Of lanes that may wait elsewhere while others run the block.
  const RegisterSet& waiting(uint32_t block) const { return waiting_[block]; }

  RegisterSet live_in(uint32_t block) const { return live_in_[block] | waiting_[block]; }
  RegisterSet live_out(uint32_t block) const { return live_out_[block] | waiting_[block]; }
  // Behind the instruction, for any lane of the warp.
  const RegisterSet& live_behind(uint32_t block, uint32_t instruction) const { return behind_[block][instruction]; }
  // Those written there that keep something.
  const RegisterSet& soft(uint32_t block, uint32_t instruction) const { return soft_[block][instruction]; }

private:
  void solve_lanes();
  void find_waiting();
  void wait_at(uint32_t branch);
  void walk_blocks();

  const RegisterProgram& program_;
  std::vector<RegisterSet> live_in_, live_out_, waiting_;
  std::vector<std::vector<RegisterSet>> behind_, soft_;
};

// The paper's Algorithm 2 for one register that an instruction of the block writes.
bool is_soft_by_algorithm_2(const RegisterProgram& program, const WarpLiveness& liveness, uint32_t block,
                            unsigned register_number);

} // namespace ptxrewrite::ir
