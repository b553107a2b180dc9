// Which branches decide whether a block is executed, and what stands in the way of two streams that come to the same
// places in the same order.
#pragma once

#include "transforms/dac/dac_classes.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms::dac {

// Does the block end in `@p ret` or `@p exit`?
bool has_guarded_exit(const ir::Function& function, ir::BlockId block);

class ControlDependence {
public:
  ControlDependence(const ir::Function& function, const ir::ControlFlow& flow);

  // Blocks whose branch, or guarded exit, decides directly whether this one is executed.
  const std::vector<ir::BlockId>& controllers(ir::BlockId block) const { return controllers_[block.index()]; }
  const std::vector<ir::BlockId>& controlled(ir::BlockId branch) const { return controlled_[branch.index()]; }
  // Directly or through other branches. By BlockId.
  std::vector<bool> governed_by(ir::BlockId branch) const;
  const ir::PostDominatorTree& post_dominators() const { return post_dominators_; }

private:
  ir::PostDominatorTree post_dominators_;
  std::vector<std::vector<ir::BlockId>> controllers_, controlled_;
};

// Why a kernel cannot be split at all; empty if it can. `at`: the instruction to blame.
//   * branches to a table of labels, cycles that are no loops;
//   * loops that wait for what other threads do: whoever waits must let others pass, and the order is lost;
//   * barriers, or instructions for a whole warp, on both sides of a branch that parts threads of a warp: a warp that
//     waits at one of them goes on with the other side;
//   * calls of functions that have barriers or end threads.
std::string why_not_split(const ir::LinearForms& forms, const AffineClasses& classes,
                          const ControlDependence& dependence, ir::InstructionId& at);

// A barrier of the block that threads wait at, which the affine stream has to know.
bool is_block_barrier(const ir::Function& function, ir::InstructionId id);

// By InstructionId: may a load there be behind something that orders it after what other blocks have written?
std::vector<bool> ordered_after_others(const ir::LinearForms& forms);

} // namespace ptxrewrite::transforms::dac
