// Aggressive dead code elimination: code is needed only if an instruction with an effect depends on it, by data or by
// control.
#include "transforms/dac/dac_body.h"

#include "ir/edit/dead_code.h"
#include "ir/edit/fold_control.h"

namespace ptxrewrite::transforms::dac {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

namespace {

class Marker {
public:
  Marker(const ir::Function& function, const ir::ControlFlow& flow, const ir::DefUse& def_use,
         const ControlDependence& dependence, const Decoupled& decoupled)
      : function_(function), flow_(flow), def_use_(def_use), dependence_(dependence),
        decoupled_(decoupled), needs_{std::vector<bool>(function.instructions.size()),
                                      std::vector<bool>(function.blocks.size())},
        values_seen_(function.values.size()), blocks_seen_(function.blocks.size()) {}

  BodyNeeds run(std::span<const InstructionId> given) {
    for (BlockId block : flow_.reverse_postorder())
      for (InstructionId id : function_.instructions_in(block)) {
        if (function_.instructions[id].kind != InstructionKind::real) continue;
        const bool branches = function_.form_of(id).effects.branch;
        if (!branches && !ir::removable_when_unused(function_, id)) need_instruction(id);
      }
    for (InstructionId id : given) {
      need_block(function_.instructions[id].block);
      need_value(function_.instructions[id].guard);
    }
    while (!values_.empty() || !blocks_.empty()) {
      if (!values_.empty()) {
        const ValueId value = values_.back();
        values_.pop_back();
        trace(value);
      } else {
        const BlockId block = blocks_.back();
        blocks_.pop_back();
        for (BlockId branch : dependence_.controllers(block))
          need_branch(branch);
      }
    }
    return std::move(needs_);
  }

private:
  void need_block(BlockId block) {
    if (blocks_seen_[block.index()]) return;
    blocks_seen_[block.index()] = true;
    blocks_.push_back(block);
  }
  void need_value(ValueId value) {
    if (values_seen_[value.index()]) return;
    values_seen_[value.index()] = true;
    values_.push_back(value);
  }

  void need_instruction(InstructionId id) {
    if (needs_.instructions[id.index()]) return;
    needs_.instructions[id.index()] = true;
    need_block(function_.instructions[id].block);
    std::span<const Operand> operands = function_.operands_of(id);
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].is(OperandKind::value) && !operands[i].is_definition() && !decoupled_(id, i))
        need_value(operands[i].as_value());
    if (ValueId guard = function_.instructions[id].guard) need_value(guard);
  }

  void need_branch(BlockId block) {
    if (needs_.branches[block.index()]) return;
    needs_.branches[block.index()] = true;
    need_block(block);
    if (ValueId guard = function_.instructions[function_.terminator(block)].guard) need_value(guard);
  }

  void trace(ValueId value) {
    const ir::DefinitionSite& site = def_use_.definition(value);
    if (site.is_parameter()) {
      need_block(site.block);
      for (EdgeId edge : flow_.predecessors(site.block)) {
        const BlockId from = function_.edges[edge].from;
        need_value(function_.arguments(edge)[site.parameter]);
        need_block(from);
        if (function_.successors(from).size() > 1) need_branch(from);
      }
    } else if (site.instruction) {
      need_instruction(site.instruction);
    }
  }

  const ir::Function& function_;
  const ir::ControlFlow& flow_;
  const ir::DefUse& def_use_;
  const ControlDependence& dependence_;
  const Decoupled& decoupled_;
  BodyNeeds needs_;
  std::vector<bool> values_seen_, blocks_seen_;
  std::vector<ValueId> values_;
  std::vector<BlockId> blocks_;
};

// Do all paths through this edge reach the join without passing the branch again?
bool leads_on(const ir::Function& function, EdgeId edge, BlockId branch, BlockId meeting) {
  std::vector<bool> seen(function.blocks.size());
  std::vector<BlockId> work{function.edges[edge].to};
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    if (block == meeting || seen[block.index()]) continue;
    if (block == branch) return false;
    seen[block.index()] = true;
    for (EdgeId next : function.successors(block))
      work.push_back(function.edges[next].to);
  }
  return true;
}

} // namespace

BodyNeeds body_needs(const ir::Function& function, const ir::ControlFlow& flow, const ir::DefUse& def_use,
                     const ControlDependence& dependence, const Decoupled& decoupled,
                     std::span<const InstructionId> given) {
  return Marker(function, flow, def_use, dependence, decoupled).run(given);
}

void drop_branches(ir::Function& function, const ControlDependence& dependence, const std::vector<bool>& needed) {
  for (BlockId block : std::vector<BlockId>(function.layout)) {
    const std::vector<EdgeId> edges(function.successors(block).begin(), function.successors(block).end());
    if (edges.size() != 2 || needed[block.index()]) continue;
    const BlockId meeting = dependence.post_dominators().immediate_post_dominator(block);
    const InstructionId last = function.terminator(block);
    if (!meeting) continue;
    if (leads_on(function, edges[1], block, meeting)) {
      function.remove(last);
      function.set_successors(block, {&edges[1], 1}, function.blocks[block].falls_through);
    } else if (leads_on(function, edges[0], block, meeting)) {
      function.instructions[last].guard = {};
      function.instructions[last].guard_negated = false;
      function.set_successors(block, {&edges[0], 1}, false);
    }
  }
  ir::remove_unreachable_blocks(function);
  ir::remove_needless_jumps(function);
}

} // namespace ptxrewrite::transforms::dac
