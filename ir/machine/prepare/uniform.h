// Warp-uniform registers, as an assembler sees them: values computed only from kernel parameters, the launch's shape
// and the block index. Whether a branch can diverge is judged more liberally: a load from a uniform address, the result
// of a vote and, where blocks are one-dimensional, the warp number count as uniform. Works in both states of a
// function; as read, a register is uniform only if all its definitions are.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/machine/prepare/settled_loops.h"

#include <memory>
#include <optional>
#include <vector>

namespace ptxrewrite::ir {

// Values that may count as uniform: only those computed for the whole block, or also those that are read.
enum class UniformSources : uint8_t { computed, read };

class UniformValues {
public:
  UniformValues(const Function& function, const ControlFlow& flow, const DominatorTree& dominators,
                const PostDominatorTree& post_dominators, UniformSources sources = UniformSources::computed);
  // The analysis with UniformSources::computed, given the result `read` with UniformSources::read.
  static UniformValues computed_among(const UniformValues& read);

  bool uniform(ValueId value) const { return !varying_[value.index()]; }
  // True if all lanes that reach the end of the block leave it to the same successor.
  bool branch_is_uniform(BlockId block) const;
  // The same judged from operands alone, ignoring a mark (.uni) on the branch.
  bool knows_branch_uniform(BlockId block) const;

private:
  // Starts the analysis from the varying values of `read`.
  UniformValues(const UniformValues& read, UniformSources sources);

  // When the results of an instruction are uniform.
  enum class Dependence : uint8_t {
    operands, // if its operands are
    memory,   // loads: if their addresses are, with UniformSources::read; never with UniformSources::computed
    vote,     // always with UniformSources::read; never with UniformSources::computed
    lane,     // never
  };

  static std::vector<Dependence> dependences_of(const Function& function);
  static Dependence dependence_of(const Function& function, InstructionId id);
  bool step();
  bool visit(InstructionId id);
  bool is_thread_index(const Operand& operand) const;
  bool parts_between_warps(InstructionId id) const;
  bool varies(InstructionId id) const;
  bool mark(ValueId value);
  bool joins_lanes_of(BlockId branch, BlockId block) const;
  bool spread_divergence(BlockId block);

  const Function& function_;
  const ControlFlow& flow_;
  const DominatorTree& dominators_;
  const PostDominatorTree& post_dominators_;
  UniformSources sources_;
  bool warps_in_rows_ = false;                                 // the text states that blocks are one-dimensional
  std::shared_ptr<const std::vector<Dependence>> dependences_; // by InstructionId
  std::vector<uint8_t> varying_;                               // by ValueId
  std::vector<bool> thread_index_;                             // tid.x
  std::vector<bool> settled_;                                  // instructions whose results are known to vary
  std::vector<bool> in_divergence_; // blocks that lanes of a warp may enter at different times
  std::vector<bool> joins_;         // blocks where diverged lanes reconverge, each with its own values
  std::vector<bool> spread_;        // blocks whose divergent branch has been processed
  std::vector<uint32_t> reached_;   // by block: position of the last branch from which it was reached
  std::vector<BlockId> work_;       // reached blocks whose successors are to be visited
  std::optional<SettledLoops> loops_;
};

} // namespace ptxrewrite::ir
