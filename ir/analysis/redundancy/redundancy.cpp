// An optimistic fixpoint: every value starts as DR uniform and can only weaken.
//
// A mark depends on the weakest source and also on control flow. A block parameter is at most as strong as the branches
// that join in its block (divergent_joins.h); a value read outside the loops around its definition is at most as strong
// as the exit conditions of these loops. The paper's rule, which considers sources only, would mark r as definite after
// `if (tid.y == 0) r = 1; else r = 2;`.
#include "ir/analysis/redundancy/redundancy.h"

#include "ir/analysis/linear/linear.h"
#include "ir/analysis/redundancy/redundancy_transfer.h"
#include "ir/core/module.h"
#include "ir/flow/divergent_joins.h"
#include "ir/ssa/ssa.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite::ir {

namespace {

using namespace redundancy;

class Solver {
public:
  Solver(const Function& function, MarkRules rules)
      : function_(function), rules_(rules), forms_(function), flow_(forms_.control_flow()), loops_(forms_.loops()),
        def_use_(forms_.def_use()), joins_(function, flow_), values_(function.values.size(), DarsieMark::uniform()),
        instructions_(function.instructions.size()), joined_(function.blocks.size(), DarsieMark::uniform()),
        branches_(function.blocks.size(), DarsieMark::uniform()), joins_of_(function.blocks.size()),
        left_(loops_.loops().size(), DarsieMark::uniform()), acquired_(function.blocks.size(), false) {
    for (ValueId value : function.values.ids())
      if (function.values[value].is_undefined) values_[value.index()] = {};
  }

  bool is_irreducible() const { return loops_.irreducible(); }

  void solve() {
    find_local_memory();
    find_acquires();
    do {
      changed_ = false;
      for (BlockId block : flow_.reverse_postorder())
        visit(block);
    } while (changed_);
  }

  std::vector<DarsieMark> values_of() { return std::move(values_); }
  std::vector<DarsieMark> instructions_of() { return std::move(instructions_); }

private:
  // ---- memory

  void find_local_memory() {
    for (VariableId id : function_.variables.ids())
      may_have_local_ |= function_.variables[id].space == StateSpace::local;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (function_.instructions[id].kind == InstructionKind::real) {
          const Form& form = function_.form_of(id);
          may_have_local_ |= form.opaque || form.effects.call || form.opcode == Opcode::alloca;
        }
  }

  // An atomic with an unused result does not acquire.
  bool acquires_used(InstructionId id) const {
    if (!acquires(function_, id)) return false;
    if (!function_.form_of(id).effects.atomic || function_.form_of(id).effects.barrier) return true;
    bool used = false;
    for_each_definition(function_, id, [&](ValueId value) { used = used || !def_use_.uses(value).empty(); });
    return used;
  }

  bool acquired_behind(InstructionId id, bool before) const {
    if (function_.instructions[id].kind != InstructionKind::real) return before;
    // A guarded barrier does not stop threads whose guard is false.
    if (is_block_barrier(function_, id)) return before && function_.instructions[id].guard.valid();
    return before || acquires_used(id);
  }

  void find_acquires() {
    for (bool changed = true; changed;) {
      changed = false;
      for (BlockId block : flow_.reverse_postorder()) {
        bool acquired = acquired_[block.index()];
        for (InstructionId id : function_.instructions_in(block))
          acquired = acquired_behind(id, acquired);
        for (EdgeId edge : function_.successors(block)) {
          const size_t next = function_.edges[edge].to.index();
          if (!acquired || acquired_[next]) continue;
          acquired_[next] = true;
          changed = true;
        }
      }
    }
  }

  // ---- control

  DarsieMark read(ValueId value, BlockId where) const {
    DarsieMark mark = values_[value.index()];
    const BlockId from = def_use_.definition(value).block;
    if (!from) return mark;
    for (LoopId loop = loops_.innermost(from); loop && !loops_.contains(loop, where);
         loop = loops_.loops()[loop].parent)
      mark = weakest(mark, left_[loop.index()]);
    return mark;
  }

  // The mark of the condition that selects the successor of a block.
  DarsieMark decision(BlockId block) const {
    if (function_.successors(block).size() < 2) return DarsieMark::uniform();
    InstructionId last = function_.blocks[block].last;
    while (last && function_.instructions[last].kind != InstructionKind::real)
      last = function_.instructions[last].previous;
    if (!last) return {};
    const Form& form = function_.form_of(last);
    if (form.opaque || form.effects.call || !form.effects.branch) return {};
    DarsieMark mark = DarsieMark::uniform();
    for_each_use(function_, last, [&](ValueId value) { mark = weakest(mark, read(value, block)); });
    return mark;
  }

  void visit_branch(BlockId block) {
    const DarsieMark mark = weakest(branches_[block.index()], decision(block));
    if (mark == branches_[block.index()]) return;
    branches_[block.index()] = mark;
    changed_ = true;
    auto& joins = joins_of_[block.index()];
    if (!joins) joins = joins_.of(block);
    for (BlockId join : *joins)
      joined_[join.index()] = weakest(joined_[join.index()], mark);
    for (LoopId loop = loops_.innermost(block); loop; loop = loops_.loops()[loop].parent)
      for (EdgeId exit : loops_.loops()[loop].exits)
        if (function_.edges[exit].from == block) left_[loop.index()] = weakest(left_[loop.index()], mark);
  }

  // ---- values

  void weaken(ValueId value, DarsieMark mark) {
    DarsieMark& known = values_[value.index()];
    const DarsieMark next = weakest(known, mark);
    if (next == known) return;
    known = next;
    changed_ = true;
  }

  void visit_parameters(BlockId block) {
    const std::span<const ValueId> parameters = function_.parameters(block);
    for (size_t i = 0; i < parameters.size(); ++i) {
      DarsieMark mark = joined_[block.index()];
      for (EdgeId edge : flow_.predecessors(block))
        if (flow_.reachable(function_.edges[edge].from))
          mark = weakest(mark, read(function_.arguments(edge)[i], block));
      weaken(parameters[i], mark);
    }
  }

  // Values that are CR by propagation but launch-uniform by their linear form, such as tid.x - tid.x.
  DarsieMark refined(ValueId value, DarsieMark mark) const {
    if (!mark.is_conditional() || rules_ == MarkRules::paper) return mark;
    const LinearForm& form = forms_.form(value);
    if (form.kind > ValueClass::launch_uniform) return mark;
    for (ObligationId id : forms_.obligations(value))
      if (!forms_.obligation(id).proved) return mark;
    return DarsieMark::uniform();
  }

  DarsieMark result_of(InstructionId id, BlockId block, bool acquired, DarsieMark carry) {
    const Form& form = function_.form_of(id);
    const ValueId guard = function_.instructions[id].guard;
    if (!is_repeatable(form)) return {};
    if (form.effects.reads_memory && !reads_shared_state(form, may_have_local_, acquired)) return {};
    const std::span<const Operand> operands = function_.operands_of(id);
    DarsieMark around = guard ? read(guard, block) : DarsieMark::uniform();
    if (form.effects.reads_carry) around = weakest(around, carry);
    DarsieMark mark = DarsieMark::uniform();
    source_marks_.assign(operands.size(), DarsieMark::uniform());
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_definition()) continue;
      const DarsieMark source = operands[i].is(OperandKind::value) ? read(operands[i].as_value(), block)
                                                                   : mark_of_source(function_, operands[i], rules_);
      mark = weakest(mark, source);
      // Old values are not arguments of the operation.
      if (operands[i].has(OperandFlag::old_value))
        around = weakest(around, source);
      else
        source_marks_[i] = source;
    }
    mark = weakest(mark, around);
    if (mark.is_vector()) return mark;
    mark.kind = kind_of_result(form, operands, source_marks_, around);
    return mark;
  }

  void visit(BlockId block) {
    visit_parameters(block);
    bool acquired = acquired_[block.index()];
    DarsieMark carry; // the carry flag left by other blocks is unknown
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != InstructionKind::real) continue;
      const DarsieMark result = result_of(id, block, acquired, carry);
      if (function_.form_of(id).effects.writes_carry)
        carry = function_.instructions[id].guard ? weakest(carry, result) : result;
      bool has_result = false;
      DarsieMark of_all = DarsieMark::uniform();
      for_each_definition(function_, id, [&](ValueId value) {
        weaken(value, refined(value, result));
        of_all = weakest(of_all, values_[value.index()]);
        has_result = true;
      });
      instructions_[id.index()] = has_result ? of_all : DarsieMark{};
      acquired = acquired_behind(id, acquired);
    }
    visit_branch(block);
  }

  const Function& function_;
  MarkRules rules_;
  LinearForms forms_;
  const ControlFlow& flow_;
  const LoopForest& loops_;
  const DefUse& def_use_;
  DivergentJoins joins_;
  std::vector<DarsieMark> values_, instructions_;
  std::vector<DarsieMark> joined_;                            // by block: marks of the branches that join there
  std::vector<DarsieMark> branches_;                          // by block: mark of its branch's condition
  std::vector<std::optional<std::vector<BlockId>>> joins_of_; // by block: of its branch
  std::vector<DarsieMark> left_;                              // by loop: mark of its exit conditions
  std::vector<bool> acquired_;                                // by block, at its beginning: see reads_shared_state
  std::vector<DarsieMark> source_marks_;
  bool may_have_local_ = false;
  bool changed_ = false;
};

} // namespace

Redundancy::Redundancy(const Function& function, MarkRules rules)
    : instruction_marks_(function.instructions.size()), value_marks_(function.values.size()) {
  if (!function.is_entry || function.layout.empty()) return;
  Solver solver(function, rules);
  // Irreducible cycles have no trip numbers by which warps could be compared.
  if (solver.is_irreducible()) return;
  solver.solve();
  instruction_marks_ = solver.instructions_of();
  value_marks_ = solver.values_of();
}

std::vector<DarsieMark> marks_of(const Function& function, MarkRules rules) {
  std::vector<DarsieMark> marks(function.instructions.size());
  if (!function.has_body) return marks;
  if (has_written_marks(function)) {
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        if (function.instructions[id].kind == InstructionKind::real)
          marks[id.index()] = written_mark(function, id).value_or(DarsieMark{});
    return marks;
  }
  if (function.is_ssa) return Redundancy(function, rules).instruction_marks();
  Function copy(function); // instructions keep their handles in SSA construction
  if (!construct_ssa(copy)) return marks;
  std::vector<DarsieMark> computed = Redundancy(copy, rules).instruction_marks();
  std::copy_n(computed.begin(), std::min(computed.size(), marks.size()), marks.begin());
  return marks;
}

} // namespace ptxrewrite::ir
