// Determined by assembling one to five shuffles, votes and warp barriers in and after branches and loops of
// several kinds: see convergence.h.
#include "ir/machine/select/convergence.h"

#include "ir/flow/loops.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"

#include <algorithm>
#include <span>
#include <vector>

namespace ptxrewrite::ir {

namespace {

// Before 9.0 a barrier does not converge the lanes itself, but the next branch with reconvergence after it does.
enum class Lanes : uint8_t { together, behind_barrier, apart };

// A fixed point from the entry: lanes are converged everywhere until a branch diverges.
class Divergence {
public:
  Divergence(const LoweringContext& context, const ControlFlow& flow, const PostDominatorTree& post_dominators,
             const UniformValues& uniform)
      : context_(context), function_(context.function), flow_(flow), post_dominators_(post_dominators),
        uniform_(uniform), loops_(function_, flow, context.dominators), at_entry_(function_.blocks.size()),
        at_loop_(function_.blocks.size()), branch_of_(function_.blocks.size(), SIZE_MAX),
        joining_(function_.blocks.size()) {
    for (BlockId block : function_.layout)
      if (flow.reachable(block)) find_branch(block);
    while (step()) {
    }
  }

  Lanes at_entry(BlockId block) const { return at_entry_[block.index()]; }
  Lanes behind_barrier(Lanes lanes) const {
    if (has(context_.capability, MachineFact::joining_barriers)) return Lanes::together;
    return std::min(lanes, Lanes::behind_barrier);
  }

private:
  // A branch at the end of `block` that diverges, with reconvergence at `join`: invalid if the sides end separately.
  struct Branch {
    BlockId block, join;
    LoopId loop; // that some lanes leave and others stay in
    std::vector<bool> inside;
    bool waits = false;  // lanes in it may wait for others: they do not reconverge
    bool gathers = true; // contains more than predicated instructions
  };

  // True if the block only ends lanes: these are not waited for.
  bool only_exits(BlockId block) const {
    for (InstructionId id : function_.instructions_in(block)) {
      const Form* form = context_.form(id);
      if (form && context_.needed[id.index()] && form->opcode != Opcode::ret && form->opcode != Opcode::exit)
        return false;
    }
    return function_.successors(block).empty();
  }

  void find_branch(BlockId block) {
    if (function_.successors(block).size() < 2 || uniform_.branch_is_uniform(block)) return;
    for (EdgeId edge : function_.successors(block))
      if (only_exits(function_.edges[edge].to)) return;
    Branch branch{block, post_dominators_.immediate_post_dominator(block), {}, {}};
    if (!branch.join && has(context_.capability, MachineFact::joining_barriers)) return;
    branch.inside.resize(function_.blocks.size());
    LoopId loop = loops_.innermost(block);
    std::vector<BlockId> blocks{block}; // the branch's, then those inside
    for (size_t at = 0; at < blocks.size(); ++at) {
      for (EdgeId edge : function_.successors(blocks[at])) {
        BlockId next = function_.edges[edge].to;
        if (at == 0 && loop && !loops_.contains(loop, next)) branch.loop = loop;
        if (next == branch.join || branch.inside[next.index()]) continue;
        branch.inside[next.index()] = true;
        blocks.push_back(next);
      }
    }
    measure(branch, std::span(blocks).subspan(1));
    branch_of_[block.index()] = branches_.size();
    if (branch.join) joining_[branch.join.index()].push_back(branches_.size());
    branches_.push_back(std::move(branch));
  }

  // True if the instruction may wait for other lanes.
  static bool may_wait(const Form& form) {
    if (form.kind == InstructionClass::atomic) return true;
    return form.kind == InstructionClass::load && (form.effects.volatile_result || form.effects.atomic);
  }

  void measure(Branch& branch, std::span<const BlockId> inside) const {
    uint32_t work = 0;
    const uint32_t depth = branch.join ? loops_.depth(branch.join) : 0;
    for (BlockId block : inside) {
      const bool loops = loops_.depth(block) > depth;
      for (InstructionId id : function_.instructions_in(block)) {
        const Form* form = context_.form(id);
        if (!form || !context_.needed[id.index()]) continue;
        work += context_.costs[id.index()].weight;
        branch.waits |= loops && may_wait(*form);
      }
    }
    branch.waits = branch.waits && !has(context_.capability, MachineFact::joining_barriers);
    branch.gathers = work > heuristic(context_.capability, Heuristic::gathered_work);
  }

  Lanes at_end(BlockId block) const {
    for (InstructionId id : function_.instructions_in(block))
      if (const Form* form = context_.form(id); form && form->effects.barrier && !form->has(Modifier::warp))
        return behind_barrier(at_entry(block));
    return at_entry(block);
  }

  // State of the lanes after the branch has reconverged.
  Lanes gathered(const Branch& branch) const {
    if (branch.waits) return Lanes::apart;
    Lanes before = branch.loop ? at_loop_[loops_.loops()[branch.loop].header.index()] : at_end(branch.block);
    return before == Lanes::behind_barrier && branch.gathers ? Lanes::together : before;
  }

  uint32_t depth(const Branch& branch) const { return context_.dominators.depth(branch.block); }

  Lanes along(BlockId from, BlockId to) const {
    Lanes lanes = at_end(from);
    if (size_t index = branch_of_[from.index()]; index != SIZE_MAX && branches_[index].join != to) lanes = Lanes::apart;
    // The outermost of the branches that reconverge there.
    const Branch* outermost = nullptr;
    for (size_t index : joining_[to.index()]) {
      const Branch& branch = branches_[index];
      if (!branch.inside[from.index()] && branch.block != from) continue;
      if (!outermost || depth(branch) < depth(*outermost)) outermost = &branch;
    }
    if (outermost) lanes = gathered(*outermost);
    return lanes;
  }

  bool step() {
    bool changed = false;
    for (BlockId block : flow_.reverse_postorder()) {
      Lanes lanes = Lanes::together, from_outside = Lanes::together;
      LoopId loop = loops_.innermost(block);
      for (EdgeId edge : flow_.predecessors(block)) {
        BlockId from = function_.edges[edge].from;
        if (!flow_.reachable(from)) continue;
        Lanes now = along(from, block);
        lanes = std::max(lanes, now);
        if (!loop || !loops_.contains(loop, from)) from_outside = std::max(from_outside, now);
      }
      changed |= lanes != at_entry_[block.index()];
      at_entry_[block.index()] = std::max(lanes, at_entry_[block.index()]);
      at_loop_[block.index()] = std::max(from_outside, at_loop_[block.index()]);
    }
    return changed;
  }

  const LoweringContext& context_;
  const Function& function_;
  const ControlFlow& flow_;
  const PostDominatorTree& post_dominators_;
  const UniformValues& uniform_;
  LoopForest loops_;
  std::vector<Lanes> at_entry_, at_loop_;    // by BlockId; at_loop_: for loop headers, on entry from outside the loop
  std::vector<size_t> branch_of_;            // by BlockId
  std::vector<std::vector<size_t>> joining_; // by BlockId: indices of branches that reconverge there
  std::vector<Branch> branches_;
};

enum class Exchange : uint8_t { none, shuffle, vote, barrier };

Exchange exchange_of(const Form& form) {
  if (!form.has(Modifier::sync)) return Exchange::none;
  if (form.kind == InstructionClass::warp_shuffle) return Exchange::shuffle;
  if (form.kind == InstructionClass::warp_vote) return Exchange::vote;
  return form.kind == InstructionClass::barrier && form.has(Modifier::warp) ? Exchange::barrier : Exchange::none;
}

// True if the last operand, the lane mask, is a literal.
bool names_all_lanes(const LoweringContext& context, InstructionId id) {
  const Operand* mask = nullptr;
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i)
    mask = operand;
  return context.is_literal(mask);
}

// Instructions of the slow path, per use.
uint32_t slow_path(const LoweringContext& context, InstructionId id, Exchange exchange, bool all_lanes) {
  const uint32_t with_mask = all_lanes ? 0 : heuristic(context.capability, Heuristic::exchange_mask);
  if (exchange == Exchange::barrier) return heuristic(context.capability, Heuristic::exchange_barrier) + with_mask;
  const bool predicate = exchange == Exchange::shuffle && !context.result(id);
  return heuristic(context.capability, Heuristic::exchange_call) + with_mask +
         (predicate ? heuristic(context.capability, Heuristic::exchange_predicate) : 0);
}

// True if the instruction may wait for other lanes: its result may depend on when they execute.
bool may_wait_for_lanes(const Form& form) {
  if (exchange_of(form) == Exchange::shuffle || exchange_of(form) == Exchange::vote) return true;
  if (form.kind == InstructionClass::load) return form.effects.volatile_result || form.effects.atomic;
  return form.kind == InstructionClass::atomic && (form.opcode != Opcode::red || is_shared(form.space));
}

// False if no instruction of the function does.
bool may_wait_for_lanes(const FunctionContents& contents) {
  return contents.loads_anew || contents.has(InstructionClass::atomic) ||
         contents.has(InstructionClass::warp_shuffle) || contents.has(InstructionClass::warp_vote);
}

bool waits_for_lanes(const LoweringContext& context, BlockId block) {
  for (InstructionId id : context.function.instructions_in(block))
    if (const Form* form = context.form(id); form && context.needed[id.index()] && may_wait_for_lanes(*form))
      return true;
  return false;
}

// By LoopId.
std::vector<bool> loops_that_wait_for_lanes(const LoweringContext& context, const LoopForest& loops) {
  std::vector<bool> waits(loops.loops().size());
  for (BlockId block : context.function.layout)
    if (LoopId loop = loops.innermost(block); loop && !waits[loop.index()])
      waits[loop.index()] = waits_for_lanes(context, block);
  for (LoopId loop : loops.loops().ids()) // inner loops have lower numbers
    if (LoopId parent = loops.loops()[loop].parent; parent && waits[loop.index()]) waits[parent.index()] = true;
  return waits;
}

} // namespace

bool has_exchanges(const Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real &&
          exchange_of(function.form_of(id)) != Exchange::none)
        return true;
  return false;
}

void weigh_waiting_loops(LoweringContext& context, const ControlFlow& flow, const UniformValues& uniform) {
  if (has(context.capability, MachineFact::joining_barriers) || !may_wait_for_lanes(context.facts.contents)) return;
  // Yield to other lanes (YIELD); before 8.0 also two votes, a comparison and two branches around them: continue when
  // all lanes remaining in the loop have arrived.
  const uint32_t turn = heuristic(context.capability, Heuristic::waiting_turn);
  const uint32_t uniform_turn = heuristic(context.capability, Heuristic::waiting_turn_uniform);
  const Function& function = context.function;
  const LoopForest loops(function, flow, context.dominators);
  const std::vector<bool> waits = loops_that_wait_for_lanes(context, loops);
  for (LoopId id : loops.loops().ids()) {
    const Loop& loop = loops.loops()[id];
    const bool parts = std::ranges::any_of(
        loop.exits, [&](EdgeId exit) { return !uniform.branch_is_uniform(function.edges[exit].from); });
    if (!parts || !waits[id.index()]) continue;
    for (EdgeId edge : loop.back_edges) {
      InstructionId branch = function.terminator(function.edges[edge].from);
      if (!branch) continue;
      InstructionCost& cost = context.costs[branch.index()];
      cost.weight = static_cast<uint16_t>(cost.weight + turn);
      cost.uniform = static_cast<uint16_t>(cost.uniform + uniform_turn);
    }
  }
}

uint32_t slow_paths_of_exchanges(const LoweringContext& context, const ControlFlow& flow,
                                 const PostDominatorTree& post_dominators, const UniformValues& uniform) {
  const Function& function = context.function;
  const FunctionContents& contents = context.facts.contents;
  const bool may_exchange = contents.has(InstructionClass::warp_shuffle) || contents.has(InstructionClass::warp_vote) ||
                            contents.has(InstructionClass::barrier);
  if (!may_exchange || !has_exchanges(function)) return 0;
  const Divergence divergence(context, flow, post_dominators, uniform);
  uint32_t sum = 0, places = 0;
  for (BlockId block : function.layout) {
    if (!flow.reachable(block)) continue;
    Lanes lanes = divergence.at_entry(block);
    for (InstructionId id : function.instructions_in(block)) {
      const Form* form = context.form(id);
      if (!form || !context.needed[id.index()]) continue;
      const Exchange exchange = exchange_of(*form);
      if (exchange == Exchange::none) {
        if (form->effects.barrier) lanes = divergence.behind_barrier(lanes);
        continue;
      }
      const bool all_lanes = names_all_lanes(context, id) || !has(context.capability, MachineFact::checked_masks);
      if (all_lanes && lanes == Lanes::together) continue;
      sum += slow_path(context, id, exchange, all_lanes);
      ++places;
    }
  }
  // From 9.0 on, a single exchange converges its lanes inline.
  if (places == 1 && has(context.capability, MachineFact::joining_barriers)) return 0;
  return places > 0 ? sum + heuristic(context.capability, Heuristic::exchange_subroutine) : 0;
}

} // namespace ptxrewrite::ir
