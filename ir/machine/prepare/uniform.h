// Which registers hold one value for all lanes of a warp, as an assembler sees it: computed from kernel parameters, the
// launch's shape and the block's index alone. Whether a branch keeps lanes together it judges more freely: what is
// loaded from one address is one value, so is what a vote says, and where blocks are a row of threads, so is the number
// of the warp. Either state of a function; as read, a register is uniform only if all that is written to it is.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"

#include <vector>

namespace ptxrewrite::ir {

// What may be the same in all lanes: only what is computed for the whole block, or what is read as well.
enum class UniformSources : uint8_t { computed, read };

class UniformValues {
public:
  UniformValues(const Function& function, const ControlFlow& flow, const PostDominatorTree& post_dominators,
                UniformSources sources = UniformSources::computed);

  bool uniform(ValueId value) const { return !varying_[value.index()]; }
  // Do all lanes that reach the end of the block leave it the same way?
  bool branch_is_uniform(BlockId block) const;
  // The same by its operands alone, whatever the text says of the branch.
  bool knows_branch_uniform(BlockId block) const;

private:
  bool step();
  bool visit(InstructionId id);
  bool reads_one_value(const Form& form) const;
  bool is_thread_index(const Operand& operand) const;
  bool parts_between_warps(InstructionId id) const;
  bool mark(ValueId value);
  bool spread_divergence(BlockId block);

  const Function& function_;
  const ControlFlow& flow_;
  const PostDominatorTree& post_dominators_;
  DominatorTree dominators_;
  UniformSources sources_;
  bool warps_in_rows_ = false; // the text says that blocks are a row of threads
  std::vector<bool> varying_;
  std::vector<bool> thread_index_;  // tid.x
  std::vector<bool> in_divergence_; // blocks that lanes of a warp may enter at different times
  std::vector<bool> joins_;         // blocks where lanes that parted meet, each with its own values
  std::vector<bool> spread_;        // blocks whose divergent branch has been followed
};

} // namespace ptxrewrite::ir
