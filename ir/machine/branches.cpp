#include "ir/machine/branches.h"

#include "ir/machine/generations.h"
#include "ir/machine/weights.h"

namespace ptxrewrite::ir {

namespace {

class Branches {
public:
  Branches(LoweringContext& context, const PostDominatorTree& post_dominators, const UniformValues& together)
      : context_(context), function_(context.function), post_dominators_(post_dominators), together_(together) {}

  void run() {
    std::vector<uint32_t> position(function_.blocks.size());
    for (uint32_t i = 0; i < function_.layout.size(); ++i)
      position[function_.layout[i].index()] = i;
    std::vector<bool> joined(function_.blocks.size());
    context_.predicated.assign(function_.blocks.size(), false);
    for (BlockId block : function_.layout) {
      InstructionId id = last_real(block);
      if (!context_.flow.reachable(block) || !id || !function_.is_opcode(id, Opcode::bra)) continue;
      std::span<const EdgeId> edges = function_.successors(block);
      BlockId target = function_.edges[edges[0]].to;
      if (!function_.instructions[id].guard) {
        // To the block behind it: nothing to do.
        if (position[target.index()] == position[block.index()] + 1) cost(id).weight = 0;
        continue;
      }
      if (edges.size() != 2) continue;
      BlockId next = function_.edges[edges[1]].to;
      if (is_predicated(block, next, target)) {
        context_.predicated[next.index()] = true;
        cost(id).weight = 0;
        continue;
      }
      // Lanes that part are brought together again.
      BlockId join = post_dominators_.immediate_post_dominator(block);
      if (context_.capability < first_separate_lanes || !join || together_.branch_is_uniform(block) ||
          joined[join.index()] || only_exits(join))
        continue;
      joined[join.index()] = true;
      cost(id).weight = static_cast<uint16_t>(cost(id).weight + 2 + barrier_clearing(context_.capability));
    }
  }

private:
  InstructionCost& cost(InstructionId id) { return context_.costs[id.index()]; }

  InstructionId last_real(BlockId block) const {
    InstructionId id = function_.blocks[block].last;
    while (id && function_.instructions[id].kind != InstructionKind::real)
      id = function_.instructions[id].previous;
    return id;
  }

  // Issued by the block's instructions, its branch left out.
  uint32_t body_weight(BlockId block) const {
    uint32_t sum = 0;
    InstructionId last = last_real(block);
    for (InstructionId id : function_.instructions_in(block))
      if (id != last || !function_.is_opcode(id, Opcode::bra)) sum += context_.costs[id.index()].weight;
    return sum;
  }

  // How much may be issued under a predicate: found by assembling longer and longer code behind a branch.
  uint32_t longest_predicated(BlockId block, BlockId skipped) const {
    constexpr uint32_t with_stores = 8, with_stores_for_all_lanes = 6, with_loads = 20, else_longest = 12;
    bool loads = false;
    for (InstructionId id : function_.instructions_in(skipped)) {
      const Form* form = context_.form(id);
      if (!form) continue;
      if (form->effects.writes_memory || form->effects.atomic)
        return together_.branch_is_uniform(block) ? with_stores_for_all_lanes : with_stores;
      loads |= form->kind == InstructionClass::load && !is_param(form->space);
    }
    return loads ? with_loads : else_longest;
  }

  // Short code that a branch skips is issued under a predicate instead.
  bool is_predicated(BlockId block, BlockId skipped, BlockId target) const {
    if (context_.flow.predecessors(skipped).size() != 1 || function_.successors(skipped).size() != 1) return false;
    if (function_.edges[function_.successors(skipped)[0]].to != target || skipped == block) return false;
    for (InstructionId id : function_.instructions_in(skipped)) {
      const Form* form = context_.form(id);
      if (!form) continue;
      if (form->effects.barrier || form->effects.convergent || form->effects.call) return false;
      if (weight_of(*form, context_.capability, context_.last_is_literal(id)).subroutine != Subroutine::none)
        return false;
      if (function_.instructions[id].guard) return false;
    }
    return body_weight(skipped) <= longest_predicated(block, skipped);
  }

  bool only_exits(BlockId block) const {
    InstructionId id = last_real(block);
    return id && body_weight(block) <= 1 &&
           (function_.is_opcode(id, Opcode::ret) || function_.is_opcode(id, Opcode::exit));
  }

  LoweringContext& context_;
  const Function& function_;
  const PostDominatorTree& post_dominators_;
  const UniformValues& together_;
};

} // namespace

void weigh_branches(LoweringContext& context, const PostDominatorTree& post_dominators, const UniformValues& together) {
  Branches(context, post_dominators, together).run();
}

} // namespace ptxrewrite::ir
