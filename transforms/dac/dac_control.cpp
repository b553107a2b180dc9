#include "transforms/dac/dac_control.h"

#include "ir/core/module.h"

#include <algorithm>
#include <functional>

namespace ptxrewrite::transforms::dac {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::LoopId;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

namespace {

bool ends_threads(const ir::Form& form) {
  return form.opcode == Opcode::ret || form.opcode == Opcode::exit;
}

// Does the result depend on concurrent actions of other threads?
bool observes_others(const ir::Form& form) {
  if (form.effects.atomic && (form.effects.reads_memory || form.opcode == Opcode::atom)) return true;
  if (form.opcode == Opcode::mbarrier) return form.has(Modifier::test_wait) || form.has(Modifier::try_wait);
  return form.effects.reads_memory && form.effects.volatile_result;
}

// Does the instruction wait for the lanes of its warp that its mask names?
bool is_warp_wide(const ir::Form& form) {
  return form.effects.convergent && !form.effects.branch && !form.effects.call && form.opcode != Opcode::activemask &&
         (form.has(Modifier::sync) || form.opcode == Opcode::bar || form.opcode == Opcode::barrier);
}

// Waits for every lane of its warp that has not exited.
bool waits_for_whole_warp(const ir::Function& function, InstructionId id) {
  constexpr uint32_t all_lanes = 0xffffffff;
  return is_warp_wide(function.form_of(id)) &&
         std::ranges::any_of(function.operands_of(id), [](const Operand& operand) {
           return operand.is(OperandKind::integer) && static_cast<uint32_t>(operand.immediate) == all_lanes;
         });
}

template <class Visit> void for_each_real(const ir::Function& function, Visit&& visit) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real) visit(id, function.form_of(id));
}

// May the function, or one that it calls, have a barrier or end threads? True for unknown callees.
bool may_disturb(const ir::Function& function, std::set<const ir::Function*>& seen) {
  if (!seen.insert(&function).second) return false;
  const ir::Module& module = function.module();
  bool disturbs = false;
  for_each_real(function, [&](InstructionId id, const ir::Form& form) {
    disturbs |= form.opcode == Opcode::exit || form.effects.barrier || is_warp_wide(form) || form.opaque;
    if (!form.effects.call) return;
    for (const Operand& operand : function.operands_of(id)) {
      if (operand.is(OperandKind::prototype) || operand.is(OperandKind::label_table)) disturbs = true;
      if (!operand.is(OperandKind::symbol) || operand.as_symbol().kind() != ir::SymbolRef::Kind::function) continue;
      const ir::Function* callee = &module.function(operand.as_symbol().function());
      for (const auto& other : module.functions)
        if (other->has_body && other->name == callee->name) callee = other.get();
      if (callee->has_body) disturbs |= may_disturb(*callee, seen);
    }
  });
  return disturbs;
}

} // namespace

bool has_guarded_exit(const ir::Function& function, BlockId block) {
  const InstructionId last = function.terminator(block);
  return last && function.instructions[last].guard && ends_threads(function.form_of(last));
}

bool is_block_barrier(const ir::Function& function, InstructionId id) {
  const ir::Form& form = function.form_of(id);
  if (form.opcode != Opcode::bar && form.opcode != Opcode::barrier) return false;
  return !form.has(Modifier::arrive) && !form.has(Modifier::warp) && !form.has(Modifier::cluster);
}

// ---------------------------------------------------------------- control dependence

ControlDependence::ControlDependence(const ir::Function& function, const ir::ControlFlow& flow)
    : post_dominators_(function, flow), controllers_(function.blocks.size()), controlled_(function.blocks.size()) {
  for (BlockId branch : flow.reverse_postorder()) {
    const bool exits = has_guarded_exit(function, branch);
    if (function.successors(branch).size() < 2 && !exits) continue;
    const BlockId end = exits ? BlockId() : post_dominators_.immediate_post_dominator(branch);
    for (EdgeId edge : function.successors(branch))
      for (BlockId block = function.edges[edge].to; block && block != end;
           block = post_dominators_.immediate_post_dominator(block)) {
        std::vector<BlockId>& list = controllers_[block.index()];
        if (!list.empty() && list.back() == branch) continue; // by the branch's other edge
        list.push_back(branch);
        controlled_[branch.index()].push_back(block);
      }
  }
}

std::vector<bool> ControlDependence::governed_by(BlockId branch) const {
  std::vector<bool> governed(controllers_.size());
  std::vector<BlockId> work{branch};
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    for (BlockId next : controlled_[block.index()]) {
      if (governed[next.index()]) continue;
      governed[next.index()] = true;
      work.push_back(next);
    }
  }
  return governed;
}

// ---------------------------------------------------------------- obstacles to splitting

namespace {

class Obstacles {
public:
  Obstacles(const ir::LinearForms& forms, const AffineClasses& classes, const ControlDependence& dependence,
            InstructionId& at)
      : forms_(forms), function_(forms.function()), classes_(classes), dependence_(dependence), at_(at) {}

  std::string find() {
    if (forms_.loops().irreducible()) return "a cycle of its control flow is no loop";
    std::string reason;
    for_each_real(function_, [&](InstructionId id, const ir::Form& form) {
      if (!reason.empty()) return;
      reason = of_instruction(id, form);
      if (!reason.empty()) at_ = id;
    });
    if (!reason.empty()) return reason;
    for (LoopId id : forms_.loops().loops().ids())
      if (InstructionId awaited = what_the_loop_awaits(forms_.loops().loops()[id], id)) {
        at_ = awaited;
        return "a loop waits for what other threads do";
      }
    return of_branches();
  }

private:
  std::string of_instruction(InstructionId id, const ir::Form& form) const {
    if (form.opaque) return "an instruction is not known";
    if (form.effects.branch && form.opcode != Opcode::bra) return "a branch has many targets";
    if (form.effects.call) {
      std::set<const ir::Function*> seen{&function_};
      for (const Operand& operand : function_.operands_of(id)) {
        if (operand.is(OperandKind::prototype) || operand.is(OperandKind::label_table))
          return "a call goes to a function that is not known";
        if (!operand.is(OperandKind::symbol) || operand.as_symbol().kind() != ir::SymbolRef::Kind::function) continue;
        const ir::Function* callee = &function_.module().function(operand.as_symbol().function());
        for (const auto& other : function_.module().functions)
          if (other->has_body && other->name == callee->name) callee = other.get();
        if (callee->has_body && may_disturb(*callee, seen)) return "a called function has barriers or ends threads";
      }
    }
    if (is_block_barrier(function_, id)) {
      for (const Operand& operand : function_.operands_of(id))
        if (!operand.is_definition() && operand.is(OperandKind::value) &&
            function_.values[operand.as_value()].type != ir::ScalarType::pred &&
            !classes_.at(operand.as_value(), function_.instructions[id].block).is_uniform())
          return "the number of a barrier differs between threads";
      if (function_.instructions[id].guard) return "a barrier is guarded";
    }
    return {};
  }

  // Traces the conditions of the loop's exits back through the loop. Returns an instruction whose result depends on
  // other threads, or an invalid ID.
  InstructionId what_the_loop_awaits(const ir::Loop& loop, LoopId id) const {
    std::vector<ValueId> work;
    for (EdgeId exit : loop.exits)
      if (InstructionId last = function_.terminator(function_.edges[exit].from))
        if (ValueId guard = function_.instructions[last].guard) work.push_back(guard);
    std::vector<bool> seen(function_.values.size());
    while (!work.empty()) {
      const ValueId value = work.back();
      work.pop_back();
      if (seen[value.index()]) continue;
      seen[value.index()] = true;
      const ir::DefinitionSite& site = forms_.def_use().definition(value);
      if (!site.block || !forms_.loops().contains(id, site.block)) continue;
      if (site.is_parameter()) {
        for (EdgeId edge : forms_.control_flow().predecessors(site.block))
          work.push_back(function_.arguments(edge)[site.parameter]);
      } else if (site.instruction) {
        if (observes_others(function_.form_of(site.instruction))) return site.instruction;
        ir::for_each_use(function_, site.instruction, [&](ValueId used) { work.push_back(used); });
      }
    }
    return {};
  }

  std::string of_branches() {
    for (BlockId block : forms_.control_flow().reverse_postorder()) {
      if (function_.successors(block).size() < 2 || classes_.branch_is_block_uniform(block)) continue;
      if (waits_on_both_sides(block, [&](InstructionId id) { return is_block_barrier(function_, id); })) {
        at_ = function_.terminator(block);
        return "both sides of a branch that may part a warp have barriers";
      }
      if (waits_on_both_sides(block, [&](InstructionId id) { return is_warp_wide(function_.form_of(id)); })) {
        at_ = function_.terminator(block);
        return "both sides of a branch that may part a warp have instructions for the whole warp";
      }
      // The other side's lanes go on alone until they exit: the affine stream sends one tuple for all of them.
      if (does_more_than_end(dependence_.post_dominators().immediate_post_dominator(block)) &&
          sides_that_wait(block, [&](InstructionId id) { return waits_for_whole_warp(function_, id); }) == 1) {
        at_ = function_.terminator(block);
        return "one side of a branch that may part a warp waits for all of its lanes";
      }
    }
    return {};
  }

  bool does_more_than_end(BlockId block) const {
    if (!block) return false;
    for (InstructionId id : function_.instructions_in(block))
      if (function_.instructions[id].kind == InstructionKind::real) return !ends_threads(function_.form_of(id));
    return true;
  }

  template <class Test> bool waits_on_both_sides(BlockId branch, Test&& waits) const {
    return sides_that_wait(branch, waits) > 1;
  }

  template <class Test> unsigned sides_that_wait(BlockId branch, Test&& waits) const {
    const BlockId meeting = dependence_.post_dominators().immediate_post_dominator(branch);
    unsigned sides = 0;
    for (EdgeId edge : function_.successors(branch)) {
      std::vector<bool> seen(function_.blocks.size());
      std::vector<BlockId> work{function_.edges[edge].to};
      bool found = false;
      while (!work.empty() && !found) {
        const BlockId block = work.back();
        work.pop_back();
        // A path that passes the branch again belongs to the next trip.
        if (block == meeting || block == branch || seen[block.index()]) continue;
        seen[block.index()] = true;
        for (InstructionId id : function_.instructions_in(block))
          found |= function_.instructions[id].kind == InstructionKind::real && waits(id);
        for (EdgeId next : function_.successors(block))
          work.push_back(function_.edges[next].to);
      }
      sides += found;
    }
    return sides;
  }

  const ir::LinearForms& forms_;
  const ir::Function& function_;
  const AffineClasses& classes_;
  const ControlDependence& dependence_;
  InstructionId& at_;
};

} // namespace

std::string why_not_split(const ir::LinearForms& forms, const AffineClasses& classes,
                          const ControlDependence& dependence, InstructionId& at) {
  return Obstacles(forms, classes, dependence, at).find();
}

// ---------------------------------------------------------------- memory order

namespace {

bool orders_loads(const ir::Function& function, const ir::DefUse& def_use, InstructionId id) {
  const ir::Form& form = function.form_of(id);
  if (form.effects.call || form.opcode == Opcode::membar || form.opcode == Opcode::fence) return true;
  if (form.opcode == Opcode::mbarrier || (form.opcode == Opcode::barrier && form.has(Modifier::cluster))) return true;
  if (form.opcode == Opcode::ld) return form.effects.atomic || form.effects.volatile_result;
  if (!form.effects.atomic || form.opcode == Opcode::red) return false;
  bool used = false;
  ir::for_each_definition(function, id, [&](ValueId value) { used |= !def_use.uses(value).empty(); });
  return used;
}

} // namespace

std::vector<bool> ordered_after_others(const ir::LinearForms& forms) {
  const ir::Function& function = forms.function();
  std::vector<bool> ordered(function.instructions.size()), seen(function.blocks.size());
  std::vector<BlockId> work;
  auto mark_from = [&](InstructionId first) {
    for (InstructionId id = first; id; id = function.instructions[id].next)
      ordered[id.index()] = true;
  };
  for (BlockId block : forms.control_flow().reverse_postorder())
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real || !orders_loads(function, forms.def_use(), id))
        continue;
      mark_from(id);
      for (EdgeId edge : function.successors(block))
        work.push_back(function.edges[edge].to);
      break;
    }
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    if (seen[block.index()]) continue;
    seen[block.index()] = true;
    mark_from(function.blocks[block].first);
    for (EdgeId edge : function.successors(block))
      work.push_back(function.edges[edge].to);
  }
  return ordered;
}

} // namespace ptxrewrite::transforms::dac
