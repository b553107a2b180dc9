// Control dependence: the branches that decide whether a block is executed, and the obstacles to splitting a kernel
// into two streams that reach the same sites in the same order.
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

  // Blocks whose branch, or guarded exit, directly decides whether this block is executed.
  const std::vector<ir::BlockId>& controllers(ir::BlockId block) const { return controllers_[block.index()]; }
  const std::vector<ir::BlockId>& controlled(ir::BlockId branch) const { return controlled_[branch.index()]; }
  // The blocks that the branch controls directly or through other branches. By BlockId.
  std::vector<bool> governed_by(ir::BlockId branch) const;
  const ir::PostDominatorTree& post_dominators() const { return post_dominators_; }

private:
  ir::PostDominatorTree post_dominators_;
  std::vector<std::vector<ir::BlockId>> controllers_, controlled_;
};

// Why a kernel cannot be split at all; empty if it can. `at`: the instruction that prevents it.
//   * branches to a table of labels, cycles that are not natural loops;
//   * loops that wait for other threads: a waiting warp must let others pass, which changes the order;
//   * barriers, or instructions for a whole warp, on both sides of a branch that diverges within a warp: a warp that
//     waits at one of them continues with the other side;
//   * calls of functions that have barriers or end threads.
std::string why_not_split(const ir::LinearForms& forms, const AffineClasses& classes,
                          const ControlDependence& dependence, ir::InstructionId& at);

// A barrier of the block at which threads wait, which the affine stream must execute.
bool is_block_barrier(const ir::Function& function, ir::InstructionId id);

// By InstructionId: may a load there follow an operation that orders it after writes of other blocks?
std::vector<bool> ordered_after_others(const ir::LinearForms& forms);

} // namespace ptxrewrite::transforms::dac
