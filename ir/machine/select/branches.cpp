#include "ir/machine/select/branches.h"

#include "ir/core/module.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/fuse/uniform_base.h"
#include "ir/machine/prepare/rule_helpers.h"
#include "ir/machine/select/block_order.h"

#include <algorithm>
#include <array>
#include <set>

namespace ptxrewrite::ir {

namespace {

class Branches {
public:
  Branches(LoweringContext& context, const PostDominatorTree& post_dominators, const UniformValues& together)
      : context_(context), function_(context.function), post_dominators_(post_dominators), together_(together),
        order_(context), next_(function_.blocks.size()) {}

  void run() {
    std::vector<uint32_t> position(function_.blocks.size());
    for (uint32_t i = 0; i < function_.layout.size(); ++i)
      position[function_.layout[i].index()] = i;
    std::vector<bool> joined(function_.blocks.size());
    context_.predicated.assign(function_.blocks.size(), false);
    for (BlockId block : function_.layout) {
      InstructionId id = last_real(block);
      if (!context_.flow.reachable(block) || !id || !function_.is_opcode(id, Opcode::bra)) continue;
      const std::span<const EdgeId> edges = function_.successors(block);
      if (!function_.instructions[id].guard || edges.size() != 2) continue;
      if (predicate_skipped(block) || predicate_both(block)) continue;
      // Diverged lanes have to reconverge.
      BlockId join = post_dominators_.immediate_post_dominator(block);
      const uint16_t gathering = fact(context_.capability, MachineFact::gathering);
      if (join) join = order_.destination(join);
      if (gathering == 0 || !join || stays_together(block) || joined[join.index()] || only_exits(join)) continue;
      joined[join.index()] = true;
      const bool ends_loop = position[function_.edges[edges[0]].to.index()] <= position[block.index()];
      const uint16_t behind = ends_loop ? fact(context_.capability, MachineFact::gathering_behind_loop) : 0;
      cost(id).weight = static_cast<uint16_t>(cost(id).weight + gathering + behind);
    }
    order_.arrange(next_);
    for (BlockId block : function_.layout)
      if (context_.flow.reachable(block)) weigh_jump(block);
  }

private:
  InstructionCost& cost(InstructionId id) { return context_.costs[id.index()]; }
  void clear_branch(BlockId block) {
    if (const InstructionId id = last_real(block); id && function_.is_opcode(id, Opcode::bra)) cost(id).weight = 0;
  }

  // Weighs the jump at the end of a block; conditional branches and reconvergence are weighed elsewhere.
  void weigh_jump(BlockId block) {
    const InstructionId id = last_real(block);
    if (!id) return;
    if (!function_.is_opcode(id, Opcode::bra)) {
      // Branches to a block that only ends become ends themselves.
      if (only_exits(block) && block != function_.entry() && !order_.is_fallen_into(block) &&
          !function_.module().hardware_form)
        cost(id).weight = 0;
      return;
    }
    if (next_[block.index()]) return; // predicated code follows
    const std::span<const BlockId> targets = order_.successors(block);
    const bool falls = std::ranges::any_of(targets, [&](BlockId to) { return order_.is_behind(block, to); });
    if (order_.only_jumps(block))
      cost(id).weight = 0;
    else if (!function_.instructions[id].guard)
      cost(id).weight = falls ? 0 : 1;
    else if (!falls)
      ++cost(id).weight;
  }

  uint32_t limit(Heuristic which) const { return heuristic(context_.capability, which); }
  bool measured() const { return limit(Heuristic::measured_skips) > 0; }

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

  // Size as ptxas measures it for predication: a 64-bit sum counts three, because its carry counts; so does one that
  // the accesses compute. Constants count that are moved or loaded for the block.
  uint32_t body_size(BlockId block) const {
    constexpr uint32_t long_sum = 3;
    uint32_t sum = body_weight(block) + (measured() ? constants_of(block) : 0);
    for (InstructionId id : function_.instructions_in(block)) {
      const Form* form = context_.form(id);
      if (!form || !is_add_or_sub(*form) || !is_int64(*form)) continue;
      if (context_.costs[id.index()].weight == 2 && !(measured() && is_product_and_sum(id))) sum += long_sum - 2;
      if (context_.absorbed[id.index()] && is_uniform_base(context_, id)) sum += long_sum - extends(id);
    }
    return sum;
  }

  // True for IMAD.WIDE with a constant that is moved before it.
  bool is_product_and_sum(InstructionId sum) const {
    return context_.absorbs[sum.index()] && std::ranges::any_of(std::array{0, 1}, [&](int i) {
             const InstructionId term = context_.definition(context_.source(sum, static_cast<size_t>(i)));
             return term && context_.absorbed[term.index()] && context_.form(term)->has(Modifier::wide);
           });
  }

  // 1 if the block extends the sum's offset for it: other machines' sums do so themselves.
  uint32_t extends(InstructionId sum) const {
    for (size_t i : {0, 1}) {
      const InstructionId term = context_.definition(context_.source(sum, i));
      if (term && function_.is_opcode(term, Opcode::cvt) && context_.same_block(term, sum) &&
          context_.costs[term.index()].weight == 1 && context_.values.only_reader(context_.result(term)) == sum)
        return 1;
    }
    return 0;
  }

  // Number of parameters that are loaded for the block, or moved into registers for addresses; and of literals that are
  // stored.
  uint32_t constants_of(BlockId block) const {
    std::set<ValueId> parameters;
    std::set<int64_t> literals;
    for (InstructionId id : function_.instructions_in(block)) {
      const Form* form = context_.form(id);
      if (!form || !context_.needed[id.index()] || form->opcode == Opcode::mov || form->opcode == Opcode::cvta)
        continue;
      for_each_use(function_, id, [&](ValueId value) {
        if (context_.source_of(value) != ValueSource::constant_bank) return;
        const ValueId parameter = context_.root_of(value);
        if (is_brought(id, value, parameter, block)) parameters.insert(parameter);
      });
      const Operand& last = function_.operands_of(id).back();
      if (form->kind == InstructionClass::store && last.is(OperandKind::integer) && last.immediate != 0)
        literals.insert(last.immediate);
    }
    return static_cast<uint32_t>(parameters.size() + literals.size());
  }

  bool is_brought(InstructionId reader, ValueId value, ValueId parameter, BlockId block) const {
    if (!has(context_.capability, MachineFact::loaded_parameters))
      return context_.reads_as_address(reader, value) && !is_shared(context_.form(reader)->space);
    return !is_read_before(parameter, block, 0);
  }

  // True if code that leads to the block reads the parameter or a copy of it.
  bool is_read_before(ValueId value, BlockId block, int depth) const {
    constexpr int longest = 4; // copies
    return std::ranges::any_of(context_.values.readers(value), [&](InstructionId reader) {
      const Form* form = context_.form(reader);
      if (!form || !context_.needed[reader.index()]) return false;
      if (form->opcode == Opcode::mov || form->opcode == Opcode::cvta)
        return depth < longest && context_.result(reader) && is_read_before(context_.result(reader), block, depth + 1);
      const BlockId place = function_.instructions[reader].block;
      return place != block && context_.dominators.dominates(place, block);
    });
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

  // The code that the block's branch skips, and where both ways meet, if the shape allows predication.
  struct Skip {
    BlockId code, target;
  };
  Skip skipped_by(BlockId block) const {
    const InstructionId branch = last_real(block);
    if (!branch || !function_.is_opcode(branch, Opcode::bra)) return {};
    const std::span<const BlockId> ways = order_.successors(block);
    if (ways.size() != 2) return {};
    for (size_t i : {1, 0}) {
      const BlockId skipped = ways[i], target = ways[1 - i];
      if (context_.flow.predecessors(skipped).size() != 1 || function_.successors(skipped).size() != 1) continue;
      if (order_.successors(skipped)[0] == target && skipped != block) return {skipped, target};
    }
    return {};
  }

  // True if there are loads whose latency could overlap with those of the skipped code.
  bool loads_around(BlockId block, BlockId target) const {
    if (loads_in(block) > 0 && !(measured() && waits_for_condition(block))) return true;
    for (EdgeId edge : context_.flow.predecessors(block))
      if (const BlockId before = function_.edges[edge].from;
          context_.predicated[before.index()] && loads_in(before) > 0)
        return true;
    for (InstructionId id : function_.instructions_in(target)) {
      if (loads_memory(id)) return true;
      if (is_barrier(id)) return false;
    }
    const BlockId next = skipped_by(target).code;
    return next && loads_in(next) > 0;
  }

  // True if the block waits for each of its loads before it branches.
  bool waits_for_condition(BlockId block) const {
    const std::set<InstructionId> feeding = feeding_instructions(block, {});
    for (InstructionId id : function_.instructions_in(block))
      if (loads_memory(id) && !feeding.contains(id)) return false;
    return true;
  }

  // The block's instructions that its branch depends on, or loads in the code that it skips, if any; and stores to
  // shared memory that stay before those in that code.
  std::set<InstructionId> feeding_instructions(BlockId block, BlockId skipped) const {
    std::set<ValueId> read;
    std::set<InstructionId> feeding;
    const auto add_operands = [&](InstructionId id) {
      for_each_use(function_, id, [&](ValueId value) { read.insert(value); });
    };
    const auto feeds = [&](InstructionId id) {
      bool result = false;
      for_each_definition(function_, id, [&](ValueId value) { result = result || read.contains(value); });
      return result;
    };
    for (InstructionId id = skipped ? function_.blocks[skipped].last : InstructionId(); id;
         id = function_.instructions[id].previous)
      if (loads_memory(id) || feeds(id)) add_operands(id);
    const bool keeps_stores = skipped && stores_to_shared(skipped);
    for (InstructionId id = function_.blocks[block].last; id; id = function_.instructions[id].previous) {
      const Form* form = context_.form(id);
      if (!form) continue;
      if (keeps_stores && form->effects.writes_memory && is_shared(form->space)) feeding.insert(id);
      if (form->opcode != Opcode::bra && !feeds(id)) continue;
      feeding.insert(id);
      add_operands(id);
    }
    return feeding;
  }

  bool stores_to_shared(BlockId block) const {
    for (InstructionId id : function_.instructions_in(block)) {
      const Form* form = context_.form(id);
      if (form && context_.needed[id.index()] && form->effects.writes_memory && is_shared(form->space)) return true;
    }
    return false;
  }

  // Machine instructions around skipped code that can be issued while it waits for its loads. Barriers hold the
  // accesses before them.
  uint32_t independent_work(BlockId block, BlockId skipped, BlockId target) const {
    const std::set<InstructionId> feeding = feeding_instructions(block, skipped);
    uint32_t work = 0, accesses = 0;
    for (InstructionId id : function_.instructions_in(block)) {
      const Form* form = context_.form(id);
      if (!form || feeding.contains(id)) continue;
      if (form->effects.barrier)
        accesses = 0;
      else
        (is_memory(*form) && !is_param(form->space) ? accesses : work) += context_.costs[id.index()].weight;
    }
    return work + accesses + work_behind(skipped, target);
  }

  uint32_t work_behind(BlockId skipped, BlockId target) const {
    std::set<ValueId> dependent(function_.parameters(target).begin(), function_.parameters(target).end());
    const bool shared = stores_to_shared(skipped);
    bool behind_barrier = false;
    uint32_t work = 0;
    const auto add = [&](InstructionId id, const Form& form) {
      behind_barrier = behind_barrier || form.effects.barrier;
      if (form.effects.barrier || form.effects.transfers_control()) return;
      bool depends = is_memory(form) && !is_param(form.space) && (behind_barrier || (shared && is_shared(form.space)));
      for_each_use(function_, id, [&](ValueId value) { depends = depends || dependent.contains(value); });
      if (depends)
        for_each_definition(function_, id, [&](ValueId value) { dependent.insert(value); });
      else
        work += context_.costs[id.index()].weight;
    };
    for (BlockId block : straight_code(target))
      for (InstructionId id : function_.instructions_in(block))
        if (const Form* form = context_.form(id); form && context_.needed[id.index()]) add(id, *form);
    return has(context_.capability, MachineFact::loaded_parameters) ? work + constants_of(target) : work;
  }

  // The block; if its branch skips a block short enough to be predicated, also that block and the branch target.
  std::vector<BlockId> straight_code(BlockId block) const {
    std::vector<BlockId> blocks{block};
    const auto [skipped, target] = skipped_by(block);
    if (!skipped || target == block || loads_in(skipped) > 0 || !can_be_predicated(skipped)) return blocks;
    if (body_size(skipped) <= limit(Heuristic::skipped_divergent)) blocks.insert(blocks.end(), {skipped, target});
    return blocks;
  }

  bool merges_results(BlockId block) const {
    for (InstructionId id : function_.instructions_in(block)) {
      const ValueId value = context_.result(id);
      if (value && context_.values.merges(value)) return true;
    }
    return false;
  }

  // The maximum size of predicated code. It is larger if the block before waits for memory anyway; code with loads is
  // predicated only if other loads or other work around it overlap with them.
  uint32_t longest_predicated(BlockId block, BlockId skipped, BlockId target) const {
    const uint32_t while_waiting = limit(Heuristic::predicated_waiting);
    if (loads_in(skipped) > 0) {
      const bool overlaps =
          loads_around(block, target) || independent_work(block, skipped, target) >= limit(Heuristic::overlapping_work);
      return overlaps ? while_waiting : 0;
    }
    const uint32_t loads_to_wait_for =
        limit(merges_results(skipped) ? Heuristic::waiting_loads_merged : Heuristic::waiting_loads);
    if (loads_in(block) >= loads_to_wait_for) return while_waiting;
    return limit(together_.branch_is_uniform(block) ? Heuristic::skipped_uniform : Heuristic::skipped_divergent);
  }

  bool can_be_predicated(BlockId skipped) const {
    for (InstructionId id : function_.instructions_in(skipped)) {
      const Form* form = context_.form(id);
      if (!form) continue;
      if (form->effects.barrier || form->effects.convergent || form->effects.call) return false;
      if (form->kind == InstructionClass::atomic) return false;
      if (expansion_of(*form, context_.capability, context_.last_is_literal(id)).subroutine != Subroutine::none)
        return false;
      if (function_.instructions[id].guard) return false;
    }
    return true;
  }

  // Predicates short code that the branch skips. Returns false if there is none.
  bool predicate_skipped(BlockId block) {
    const auto [skipped, target] = skipped_by(block);
    if (!skipped || body_weight(skipped) > limit(Heuristic::predicated_waiting)) return false;
    if (!can_be_predicated(skipped)) return false;
    if (measured() && target && only_exits(target) && function_.is_entry) return false; // lanes that skip it exit
    const uint32_t size = body_size(skipped);
    if (size != 0 && size > longest_predicated(block, skipped, target)) return false;
    predicate(block, {skipped});
    return true;
  }

  // The block after both sides of a branch, if both lead to it and have no other predecessor; invalid otherwise.
  BlockId behind_both(BlockId one, BlockId other) const {
    for (BlockId side : {one, other})
      if (context_.flow.predecessors(side).size() != 1 || function_.successors(side).size() != 1) return {};
    const BlockId behind = order_.successors(one)[0];
    return one != other && order_.successors(other)[0] == behind ? behind : BlockId();
  }

  // Two short sides are issued in sequence, each with its predicate. The longer one decides.
  bool predicate_both(BlockId block) {
    const std::span<const BlockId> ways = order_.successors(block);
    const BlockId one = ways[1], other = ways[0], behind = behind_both(one, other);
    if (!behind || behind == block || !can_be_predicated(one) || !can_be_predicated(other)) return false;
    uint32_t longest =
        limit(together_.branch_is_uniform(block) ? Heuristic::sides_uniform : Heuristic::sides_divergent);
    if (loads_in(one) + loads_in(other) > 0)
      longest = loads_around(block, behind) ? limit(Heuristic::predicated_waiting) : 0;
    if (std::max(body_size(one), body_size(other)) > longest) return false;
    predicate(block, {one, other});
    return true;
  }

  // Marks the sides as predicated: they stand behind the block, and no branch is left among them.
  void predicate(BlockId block, std::initializer_list<BlockId> sides) {
    BlockId last = block;
    for (BlockId side : sides) {
      context_.predicated[side.index()] = true;
      clear_branch(last);
      next_[last.index()] = side;
      last = side;
    }
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
  BlockOrder order_;
  std::vector<BlockId> next_; // by BlockId: predicated code that has to stand behind the block
};

} // namespace

void weigh_branches(LoweringContext& context, const PostDominatorTree& post_dominators, const UniformValues& together) {
  Branches(context, post_dominators, together).run();
}

} // namespace ptxrewrite::ir
