// Which blocks do all lanes of a warp run equally often, and what does lane 0 alone run? Derived from the kernel's
// terms, independently of the analysis of pass `warp`.
//
// A lane's number of executions of a block is decided by the branches on which the block depends (the closure of
// control dependence). If every such branch has the same condition in all lanes, the block's n-th execution is a joint
// one: branches in between may separate lanes, but not around the block.
#pragma once

#include "evaluate/prove/symbolic.h"
#include "ir/flow/def_use.h"
#include "transforms/manager/pass.h"

#include <set>
#include <span>
#include <vector>

namespace ptxrewrite::prove {

inline constexpr unsigned warp_size = 32;

// Known facts about the shape of blocks, from directives and from conditions that are checked at launch.
struct WarpShape {
  bool is_whole = false; // the number of threads of a block is a multiple of 32
  bool is_row = false;   // tid.x of a warp's lanes are consecutive from a multiple of 32, tid.y and tid.z are equal
};
WarpShape warp_shape(const ir::Function& function, std::span<const transforms::Obligation> ledger);

// `%laneid` is tid.x & 31 in warps that are rows, and always below 32.
std::vector<Assumption> lane_facts(Terms& terms, const WarpShape& shape);

// Is `after`, a barrier of the whole warp, the same as `before`, a barrier of the block, because a block is one warp?
// All lanes execute the same aligned barrier (ISA); no barrier of the kernel may count other arrivals than its
// threads'.
bool is_barrier_of_one_warp(const ir::Function& original, ir::InstructionId before, const ir::Function& rewritten,
                            ir::InstructionId after);

class Lanes {
public:
  // The function must be in SSA form.
  Lanes(const ir::Function& function, const WarpShape& shape);

  // Do all 32 lanes of each warp execute the block, and each of them equally often? False if lanes may have exited.
  bool all_reach(ir::BlockId block);
  // Has no lane but lane 0 an effect that depends on the value? `joint`: instructions that read it of lane 0 alone.
  bool only_lane_zero_reads(ir::ValueId value, const std::set<ir::InstructionId>& joint);

private:
  bool is_uniform_branch(ir::BlockId block);
  bool is_uniform(TermId term, ir::BlockId block);
  bool depends_on(ir::BlockId block, ir::BlockId branch) const;
  bool runs_in_lane_zero(ir::BlockId block);
  bool implies_lane_zero(const std::vector<TermId>& conditions);
  bool reads(ir::ValueId value, const std::set<ir::InstructionId>& joint, std::set<ir::ValueId>& visited);

  const ir::Function& function_;
  WarpShape shape_;
  Terms terms_;
  Solver solver_;
  Bounds bounds_;
  ExactForms exact_;
  SymbolicKernel kernel_;
  ir::ControlFlow flow_;
  ir::PostDominatorTree post_dominators_;
  ir::DefUse def_use_;
  std::map<ir::BlockId, bool> reached_, uniform_, alone_;
};

} // namespace ptxrewrite::prove
