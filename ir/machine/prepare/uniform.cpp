// A greatest fixed point: everything is uniform until something it depends on is not.
#include "ir/machine/prepare/uniform.h"

#include "ir/core/module.h"
#include "ir/machine/prepare/constant_bank.h"

#include <algorithm>
#include <ranges>

namespace ptxrewrite::ir {

namespace {

constexpr int64_t warp_size = 32;

// .reqntid n or n,1,1
bool warps_in_rows(const Function& function) {
  return std::ranges::any_of(function.directives, [&](const FunctionDirective& directive) {
    if (function.module().text(directive.name) != ".reqntid") return false;
    return (directive.count < 2 || directive.numbers[1] == 1) && (directive.count < 3 || directive.numbers[2] == 1);
  });
}

} // namespace

UniformValues::UniformValues(const Function& function, const ControlFlow& flow, const DominatorTree& dominators,
                             const PostDominatorTree& post_dominators, UniformSources sources)
    : function_(function), flow_(flow), dominators_(dominators), post_dominators_(post_dominators), sources_(sources),
      warps_in_rows_(sources == UniformSources::read && warps_in_rows(function)),
      dependences_(std::make_shared<const std::vector<Dependence>>(dependences_of(function))),
      varying_(function.values.size()), thread_index_(function.values.size()), settled_(function.instructions.size()),
      in_divergence_(function.blocks.size()), joins_(function.blocks.size()), spread_(function.blocks.size()),
      reached_(function.blocks.size(), UINT32_MAX) {
  while (step()) {
  }
}

// A value that varies under UniformSources::read also varies under UniformSources::computed, so the fixed point for
// `computed` starts from the varying values of `read`.
UniformValues::UniformValues(const UniformValues& read, UniformSources sources)
    : function_(read.function_), flow_(read.flow_), dominators_(read.dominators_),
      post_dominators_(read.post_dominators_), sources_(sources), dependences_(read.dependences_),
      varying_(read.varying_), thread_index_(read.thread_index_), settled_(read.settled_),
      in_divergence_(read.in_divergence_), joins_(read.joins_), spread_(read.spread_), reached_(read.reached_) {
  const auto counts = [&](size_t i) {
    return !settled_[i] && ((*dependences_)[i] == Dependence::memory || (*dependences_)[i] == Dependence::vote);
  };
  if (!read.warps_in_rows_ && std::ranges::none_of(std::views::iota(size_t{0}, settled_.size()), counts)) return;
  while (step()) {
  }
}

UniformValues UniformValues::computed_among(const UniformValues& read) {
  return UniformValues(read, UniformSources::computed);
}

std::vector<UniformValues::Dependence> UniformValues::dependences_of(const Function& function) {
  std::vector<Dependence> list(function.instructions.size());
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      list[id.index()] = dependence_of(function, id);
  return list;
}

UniformValues::Dependence UniformValues::dependence_of(const Function& function, InstructionId id) {
  for (const Operand& operand : function.operands_of(id)) {
    if (!operand.is(OperandKind::special_register)) continue;
    const SpecialRegisterInfo& special = info(static_cast<SpecialRegister>(operand.id));
    if (special.is_volatile || special.uniformity > Uniformity::block) return Dependence::lane;
  }
  if (function.instructions[id].kind != InstructionKind::real) return Dependence::operands;
  const Form& form = function.form_of(id);
  if (form.effects.pure() || reads_constant_bank(function, id)) return Dependence::operands;
  if (form.kind == InstructionClass::warp_vote)
    return form.opcode == Opcode::vote ? Dependence::vote : Dependence::lane;
  const bool reads_one = form.opcode == Opcode::ld && form.space != StateSpace::local &&
                         !form.effects.volatile_result && !form.effects.atomic;
  return reads_one ? Dependence::memory : Dependence::lane;
}

bool UniformValues::mark(ValueId value) {
  if (varying_[value.index()]) return false;
  varying_[value.index()] = true;
  return true;
}

bool UniformValues::branch_is_uniform(BlockId block) const {
  const InstructionId branch = function_.terminator(block);
  return (branch && function_.form_of(branch).has(Modifier::uni)) || knows_branch_uniform(block);
}

bool UniformValues::knows_branch_uniform(BlockId block) const {
  for (InstructionId id = function_.blocks[block].last; id; id = function_.instructions[id].previous) {
    if (function_.instructions[id].kind != InstructionKind::real) continue;
    if (function_.form_of(id).has(Modifier::uni) && !function_.instructions[id].guard) return true;
    ValueId guard = function_.instructions[id].guard;
    if (guard && varying_[guard.index()]) return false;
    if (function_.is_opcode(id, Opcode::brx))
      for (const Operand& operand : function_.operands_of(id))
        if (operand.is(OperandKind::value) && varying_[operand.as_value().index()]) return false;
    return true;
  }
  return true;
}

bool UniformValues::is_thread_index(const Operand& operand) const {
  if (operand.is(OperandKind::value)) return thread_index_[operand.as_value().index()];
  return operand.is(OperandKind::special_register) && operand.selector == component_selector(0) &&
         static_cast<SpecialRegister>(operand.id) == SpecialRegister::tid;
}

// A copy, or an integer conversion wide enough for any thread index.
static bool keeps_number(const Function& function, InstructionId id) {
  if (function.is_opcode(id, Opcode::mov)) return function.operands_of(id).size() == 2;
  if (!function.is_opcode(id, Opcode::cvt)) return false;
  const Form& form = function.form_of(id);
  return !is_float(form.type(0)) && !is_float(form.type(1)) && bit_width(form.type(0)) >= 16 &&
         bit_width(form.type(1)) >= 16;
}

// tid.x >> 5, tid.x & -32, tid.x < 64: the same for a whole warp, as ptxas 13.0 analyses it.
bool UniformValues::parts_between_warps(InstructionId id) const {
  const std::span<const Operand> operands = function_.operands_of(id);
  const Form& form = function_.form_of(id);
  if (operands.size() != 3 || bit_width(form.type()) != 32 || is_float(form.type())) return false;
  if (!is_thread_index(operands[1]) || !operands[2].is(OperandKind::integer)) return false;
  const int64_t literal = operands[2].immediate;
  if (form.opcode == Opcode::shr) return literal >= 5;
  if (form.opcode == Opcode::and_) {
    const uint32_t above = ~static_cast<uint32_t>(literal);
    return above >= warp_size - 1 && (above & (above + 1)) == 0;
  }
  if (form.opcode != Opcode::setp) return false;
  const bool strict =
      form.has(Modifier::lt) || form.has(Modifier::ge) || form.has(Modifier::lo) || form.has(Modifier::hs);
  const bool or_equal =
      form.has(Modifier::le) || form.has(Modifier::gt) || form.has(Modifier::ls) || form.has(Modifier::hi);
  return (strict || or_equal) && literal >= 0 && (literal + (or_equal ? 1 : 0)) % warp_size == 0;
}

// The instruction is not settled.
bool UniformValues::visit(InstructionId id) {
  if (warps_in_rows_ && function_.instructions[id].kind == InstructionKind::real) {
    const std::span<const Operand> operands = function_.operands_of(id);
    if (function_.is_ssa && keeps_number(function_, id) && is_thread_index(operands[1]))
      thread_index_[operands[0].as_value().index()] = true;
    if (parts_between_warps(id)) return false;
  }
  if (!varies(id)) return false;
  settled_[id.index()] = true;
  bool changed = false;
  for_each_definition(function_, id, [&](ValueId value) { changed |= mark(value); });
  return changed;
}

// Can the instruction's results differ between lanes, given the operands that are already marked as varying?
bool UniformValues::varies(InstructionId id) const {
  const Instruction& instruction = function_.instructions[id];
  // As read, a register that lanes write at different times has different values, even if each is uniform.
  if (!function_.is_ssa && in_divergence_[instruction.block.index()]) return true;
  const Dependence dependence = (*dependences_)[id.index()];
  if (dependence == Dependence::lane) return true;
  if (dependence != Dependence::operands && sources_ == UniformSources::computed) return true;
  if (dependence == Dependence::vote) return false;
  if (instruction.guard && varying_[instruction.guard.index()]) return true;
  for (const Operand& operand : function_.operands_of(id))
    if (operand.is(OperandKind::value) && !operand.is_definition() && varying_[operand.as_value().index()]) return true;
  return false;
}

// Do disjoint paths lead from the branch to this block? Yes if its immediate dominator also dominates the branch.
bool UniformValues::joins_lanes_of(BlockId branch, BlockId block) const {
  const BlockId before = dominators_.immediate_dominator(block);
  return !before || dominators_.dominates(before, branch);
}

// Marks the blocks between a divergent branch and the reconvergence of all lanes. Returns true if a pass that has come
// to this block has to be repeated.
bool UniformValues::spread_divergence(BlockId block) {
  if (spread_[block.index()] || function_.successors(block).size() < 2 || branch_is_uniform(block)) return false;
  spread_[block.index()] = true;
  const BlockId end = post_dominators_.immediate_post_dominator(block);
  const uint32_t position = flow_.position(block);
  bool changed = !function_.is_ssa; // as read, in_divergence_ counts, too
  // In a small function a visit to each block costs less than the loops.
  constexpr size_t few_blocks = 64;
  if (!loops_ && function_.layout.size() >= few_blocks) loops_.emplace(function_, flow_, dominators_);
  auto reach = [&](EdgeId edge) {
    const BlockId to = function_.edges[edge].to;
    if (reached_[to.index()] == position) return;
    reached_[to.index()] = position;
    work_.push_back(to);
  };
  work_.assign(1, block);
  for (bool is_branch = true; !work_.empty(); is_branch = false) {
    const BlockId now = work_.back();
    work_.pop_back();
    if (!is_branch) {
      in_divergence_[now.index()] = true; // including the end: arguments of its parameters differ
      if (!joins_[now.index()] && joins_lanes_of(block, now)) {
        joins_[now.index()] = true;
        changed |= std::ranges::any_of(flow_.predecessors(now), [&](EdgeId edge) {
          return flow_.position(function_.edges[edge].from) < position;
        });
      }
      if (now == end) continue;
      if (const Loop* loop = loops_ ? loops_->behind(now, block, {in_divergence_, joins_}) : nullptr) {
        std::ranges::for_each(loop->exits, reach);
        continue;
      }
    }
    std::ranges::for_each(function_.successors(now), reach);
  }
  return changed;
}

// One pass in reverse post-order; returns true if another pass is needed. In SSA form a definition is visited before
// its uses, so only changes to blocks that come earlier in this order, over back edges, need another pass.
bool UniformValues::step() {
  bool again = false;
  for (BlockId block : flow_.reverse_postorder()) {
    bool changed = false;
    for (InstructionId id : function_.instructions_in(block))
      if (!settled_[id.index()]) changed |= visit(id);
    again |= spread_divergence(block);
    for (EdgeId edge : function_.successors(block)) {
      const BlockId to = function_.edges[edge].to;
      const std::span<const ValueId> parameters = function_.parameters(to), arguments = function_.arguments(edge);
      bool marked = false;
      for (size_t i = 0; i < parameters.size() && i < arguments.size(); ++i)
        if (joins_[to.index()] || varying_[arguments[i].index()]) marked |= mark(parameters[i]);
      again |= marked && flow_.position(to) <= flow_.position(block);
    }
    again |= changed && !function_.is_ssa;
  }
  return again;
}

} // namespace ptxrewrite::ir
