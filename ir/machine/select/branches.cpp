#include "ir/machine/select/branches.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/weights.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>

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
        // A jump to the next block needs no instruction.
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
      if (predicate_both(block, next, target)) continue;
      // Diverged lanes have to reconverge.
      BlockId join = post_dominators_.immediate_post_dominator(block);
      const uint16_t gathering = fact(context_.capability, MachineFact::gathering);
      if (gathering == 0 || !join || stays_together(block) || joined[join.index()] || only_exits(join)) continue;
      joined[join.index()] = true;
      const bool ends_loop = position[target.index()] <= position[block.index()];
      const uint16_t behind = ends_loop ? fact(context_.capability, MachineFact::gathering_behind_loop) : 0;
      cost(id).weight = static_cast<uint16_t>(cost(id).weight + gathering + behind);
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

  // Weight of the block's instructions, without its branch.
  uint32_t body_weight(BlockId block) const {
    uint32_t sum = 0;
    InstructionId last = last_real(block);
    for (InstructionId id : function_.instructions_in(block))
      if (id != last || !function_.is_opcode(id, Opcode::bra)) sum += context_.costs[id.index()].weight;
    return sum;
  }

  // Size as ptxas measures it for predication: a 64-bit sum counts three, because its carry counts.
  uint32_t body_size(BlockId block) const {
    uint32_t sum = body_weight(block);
    for (InstructionId id : function_.instructions_in(block)) {
      const Form* form = context_.form(id);
      if (form && is_add_or_sub(*form) && is_int64(*form) && context_.costs[id.index()].weight == 2) ++sum;
    }
    return sum;
  }

  bool loads_memory(InstructionId id) const {
    const Form* form = context_.form(id);
    return form && context_.needed[id.index()] && form->kind == InstructionClass::load &&
           !form->effects.volatile_result && (form->space == StateSpace::global || form->space == StateSpace::none);
  }

  bool is_barrier(InstructionId id) const {
    const Form* form = context_.form(id);
    return form && form->effects.barrier;
  }

  // Number of loads after the block's last barrier.
  uint32_t loads_in(BlockId block) const {
    uint32_t loads = 0;
    for (InstructionId id : function_.instructions_in(block))
      loads = is_barrier(id) ? 0 : loads + loads_memory(id);
    return loads;
  }

  // The code that the block's branch skips, if its shape allows predication; invalid otherwise.
  BlockId skipped_by(BlockId block) const {
    const std::span<const EdgeId> edges = function_.successors(block);
    const InstructionId branch = last_real(block);
    if (edges.size() != 2 || !branch || !function_.is_opcode(branch, Opcode::bra)) return {};
    const BlockId skipped = function_.edges[edges[1]].to, target = function_.edges[edges[0]].to;
    if (context_.flow.predecessors(skipped).size() != 1 || function_.successors(skipped).size() != 1) return {};
    return function_.edges[function_.successors(skipped)[0]].to == target && skipped != block ? skipped : BlockId();
  }

  // True if there are loads whose latency could overlap with those of the skipped code.
  bool loads_around(BlockId block, BlockId target) const {
    if (loads_in(block) > 0) return true;
    for (EdgeId edge : context_.flow.predecessors(block))
      if (const BlockId before = function_.edges[edge].from;
          context_.predicated[before.index()] && loads_in(before) > 0)
        return true;
    for (InstructionId id : function_.instructions_in(target)) {
      if (loads_memory(id)) return true;
      if (is_barrier(id)) return false;
    }
    const BlockId next = skipped_by(target);
    return next && loads_in(next) > 0;
  }

  bool merges_results(BlockId block) const {
    for (InstructionId id : function_.instructions_in(block)) {
      const ValueId value = context_.result(id);
      if (value && context_.values.merges(value)) return true;
    }
    return false;
  }

  // The maximum size of predicated code, determined by assembling longer and longer code after a branch. It is larger
  // if the block before waits for memory anyway; code with loads is predicated only if there are other loads around it.
  uint32_t longest_predicated(BlockId block, BlockId skipped, BlockId target) const {
    constexpr uint32_t for_all_lanes = 6, for_some = 8, while_waiting = 20;
    const uint32_t more = has(context_.capability, MachineFact::joining_barriers) ? 2 : 0;
    const uint32_t loads_to_wait_for = (merges_results(skipped) ? 3 : 4) + more;
    const uint32_t loads = loads_in(block);
    if (loads_in(skipped) > 0) return loads_around(block, target) ? while_waiting : 0;
    if (loads >= loads_to_wait_for) return while_waiting;
    return together_.branch_is_uniform(block) ? for_all_lanes : for_some;
  }

  bool can_be_predicated(BlockId skipped) const {
    for (InstructionId id : function_.instructions_in(skipped)) {
      const Form* form = context_.form(id);
      if (!form) continue;
      if (form->effects.barrier || form->effects.convergent || form->effects.call) return false;
      if (form->kind == InstructionClass::atomic) return false;
      if (weight_of(*form, context_.capability, context_.last_is_literal(id)).subroutine != Subroutine::none)
        return false;
      if (function_.instructions[id].guard) return false;
    }
    return true;
  }

  // True if the branch skips short code, which is predicated instead.
  bool is_predicated(BlockId block, BlockId skipped, BlockId target) const {
    if (skipped_by(block) != skipped || !can_be_predicated(skipped)) return false;
    const uint32_t size = body_size(skipped);
    return size == 0 || size <= longest_predicated(block, skipped, target);
  }

  // The block after both sides of a branch, if both lead to it and have no other predecessor; invalid otherwise.
  BlockId behind_both(BlockId one, BlockId other) const {
    for (BlockId side : {one, other})
      if (context_.flow.predecessors(side).size() != 1 || function_.successors(side).size() != 1) return {};
    const BlockId behind = function_.edges[function_.successors(one)[0]].to;
    return one != other && function_.edges[function_.successors(other)[0]].to == behind ? behind : BlockId();
  }

  // Two short sides are issued in sequence, each with its predicate. The longer one decides; limits determined by
  // assembling longer and longer ones.
  bool predicate_both(BlockId block, BlockId one, BlockId other) {
    const BlockId behind = behind_both(one, other);
    if (!behind || behind == block || !can_be_predicated(one) || !can_be_predicated(other)) return false;
    constexpr uint32_t for_all_lanes = 5, for_some = 7, while_waiting = 20;
    uint32_t longest = together_.branch_is_uniform(block) ? for_all_lanes : for_some;
    if (loads_in(one) + loads_in(other) > 0) longest = loads_around(block, behind) ? while_waiting : 0;
    if (std::max(body_size(one), body_size(other)) > longest) return false;
    cost(last_real(block)).weight = 0;
    for (BlockId side : {one, other}) {
      context_.predicated[side.index()] = true;
      const InstructionId last = last_real(side);
      if (last && function_.is_opcode(last, Opcode::bra)) cost(last).weight = 0;
    }
    return true;
  }

  // True if lanes need no reconvergence. Before 9.0, ptxas ignores a mark (.uni) on the branch for this.
  bool stays_together(BlockId block) const {
    return has(context_.capability, MachineFact::joining_barriers) ? together_.branch_is_uniform(block)
                                                                   : together_.knows_branch_uniform(block);
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
