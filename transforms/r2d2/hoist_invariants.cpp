// Moves invariant computation out of the loop over virtual blocks.
//
// Pure instructions of constants, parameters and thread indices are the same for every virtual block; PTX has no trap
// that executing them early could raise. Each hoisted value that the loop reads occupies a register throughout, so that
// only the values with the largest saving per register are hoisted. Values that ptxas rematerializes at no cost (a
// parameter, an immediate) are not worth a register; launch-uniform values are computed by the uniform datapath, and
// must save more.
#include "ir/edit/dead_code.h"
#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"
#include "ir/flow/dominators.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/figures/target.h"
#include "ir/machine/select/lowering.h"
#include "transforms/r2d2/persistent.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <vector>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr unsigned least_saving = 1;
constexpr unsigned least_uniform_saving = 3;
// Number of instructions over which a candidate's saving is summed; longer chains are good candidates anyway.
constexpr size_t weighed_instructions = 64;

struct Candidate {
  ValueId value;
  uint32_t position = 0; // of its instruction among the invariant ones
  unsigned registers = 0;
  unsigned saving = 0; // machine instructions per virtual block; an upper bound if candidates share work
};

class Hoister {
public:
  Hoister(ir::Function& function, BlockId preheader, BlockId header)
      : function_(function), preheader_(preheader), flow_(function), dominators_(function, flow_), def_use_(function),
        lowering_(ir::lower(function, ir::target_capability(function.module()))) {
    for (BlockId block : flow_.reverse_postorder())
      if (dominators_.dominates(header, block)) loop_.push_back(block);
  }

  size_t run(unsigned register_limit);

private:
  void find_invariants();
  bool is_invariant(InstructionId id) const;
  std::vector<Candidate> candidates() const;
  bool read_by_the_rest(ValueId value) const;
  unsigned weight(InstructionId id) const;
  // The instructions that compute `value` and are not hoisted yet, operands first; stops at about `limit`.
  std::vector<InstructionId> needed_for(ValueId value, size_t limit = SIZE_MAX) const;
  void move(InstructionId id);
  void replace_reads();

  ir::Function& function_;
  BlockId preheader_;
  ir::ControlFlow flow_;
  ir::DominatorTree dominators_;
  ir::DefUse def_use_;
  ir::Lowering lowering_;
  std::vector<BlockId> loop_;             // in reverse post-order
  std::vector<InstructionId> invariants_; // operands before users
  std::vector<uint32_t> position_;        // in that list, by InstructionId
  std::vector<bool> invariant_;           // by InstructionId
  std::vector<bool> staying_;             // by InstructionId: invariant, but computed in the loop
  std::vector<bool> thread_dependent_;    // by InstructionId, of invariant ones
  std::map<ValueId, ValueId> copies_;     // before the loop
  std::set<ValueId> chosen_;
  size_t moved_ = 0;
};

bool Hoister::is_invariant(InstructionId id) const {
  const ir::Instruction& instruction = function_.instructions[id];
  if (instruction.kind != InstructionKind::real || instruction.guard || function_.keeps_old_values(id) ||
      !ir::removable_when_unused(function_, id))
    return false;
  for (const Operand& operand : function_.operands_of(id)) {
    if (operand.is(OperandKind::text) || operand.is(OperandKind::label_table)) return false;
    if (!operand.is(OperandKind::value) || operand.is_definition()) continue;
    const InstructionId source = def_use_.definition(operand.as_value()).instruction;
    if (!source || !invariant_[source.index()]) return false;
  }
  return true;
}

void Hoister::find_invariants() {
  invariant_.assign(function_.instructions.size(), false);
  thread_dependent_.assign(function_.instructions.size(), false);
  position_.assign(function_.instructions.size(), 0);
  for (BlockId block : loop_)
    for (InstructionId id : function_.instructions_in(block)) {
      if (!is_invariant(id)) continue;
      invariant_[id.index()] = true;
      position_[id.index()] = static_cast<uint32_t>(invariants_.size());
      invariants_.push_back(id);
      bool of_thread = false;
      for (const Operand& operand : function_.operands_of(id)) {
        if (operand.is(OperandKind::special_register))
          of_thread |= info(static_cast<ir::SpecialRegister>(operand.id)).uniformity >= ir::Uniformity::warp;
        else if (operand.is(OperandKind::value) && !operand.is_definition())
          of_thread |= thread_dependent_[def_use_.definition(operand.as_value()).instruction.index()];
      }
      thread_dependent_[id.index()] = of_thread;
    }
  // Predicate registers are scarce: the tested value is kept in a register, the test stays in the loop.
  staying_.assign(function_.instructions.size(), false);
  for (auto id = invariants_.rbegin(); id != invariants_.rend(); ++id)
    ir::for_each_definition(function_, *id, [&](ValueId value) {
      if (function_.values[value].type == ir::ScalarType::pred && read_by_the_rest(value)) staying_[id->index()] = true;
    });
}

bool Hoister::read_by_the_rest(ValueId value) const {
  return std::ranges::any_of(def_use_.uses(value), [&](const ir::Use& use) {
    return use.edge.valid() || !invariant_[use.instruction.index()] || staying_[use.instruction.index()];
  });
}

// Number of machine instructions that a warp saves if this is computed before the loop.
unsigned Hoister::weight(InstructionId id) const {
  const ir::InstructionCost& cost = lowering_.cost(id);
  return cost.weight + cost.uniform;
}

std::vector<InstructionId> Hoister::needed_for(ValueId value, size_t limit) const {
  std::set<InstructionId> wanted;
  std::vector<ValueId> work{value};
  while (!work.empty() && wanted.size() < limit) {
    const ValueId next = work.back();
    work.pop_back();
    if (copies_.contains(next)) continue;
    const InstructionId id = def_use_.definition(next).instruction;
    if (wanted.insert(id).second) ir::for_each_use(function_, id, [&](ValueId read) { work.push_back(read); });
  }
  std::vector<InstructionId> ordered(wanted.begin(), wanted.end());
  std::ranges::sort(ordered, {}, [&](InstructionId id) { return position_[id.index()]; });
  return ordered;
}

std::vector<Candidate> Hoister::candidates() const {
  std::vector<Candidate> list;
  for (InstructionId id : invariants_)
    ir::for_each_definition(function_, id, [&](ValueId value) {
      const ir::ScalarType type = function_.values[value].type;
      if (type == ir::ScalarType::pred || !read_by_the_rest(value)) return;
      Candidate candidate{value, position_[id.index()], (ir::bit_width(type) + 31) / 32};
      for (InstructionId needed : needed_for(value, weighed_instructions))
        candidate.saving += weight(needed);
      if (candidate.saving >= (thread_dependent_[id.index()] ? least_saving : least_uniform_saving))
        list.push_back(candidate);
    });
  // Among candidates whose saving was cut off at the limit, the later ones save more.
  const auto lateness = [](const Candidate& one) { return one.saving >= weighed_instructions ? one.position : 0; };
  std::ranges::stable_sort(list, [&](const Candidate& a, const Candidate& b) {
    const unsigned left = a.saving * b.registers, right = b.saving * a.registers;
    return left != right ? left > right : lateness(a) > lateness(b);
  });
  return list;
}

void Hoister::move(InstructionId id) {
  ir::Instruction copy = function_.instructions[id];
  std::span<const Operand> old = function_.operands_of(id);
  std::vector<Operand> operands(old.begin(), old.end());
  for (Operand& operand : operands) {
    if (!operand.is(OperandKind::value)) continue;
    const ValueId value = operand.as_value();
    if (operand.is_definition()) {
      const ir::Value row = function_.values[value];
      copies_[value] = function_.add_value(row);
    }
    operand.id = copies_.at(value).index();
  }
  const InstructionId terminator = function_.terminator(preheader_);
  assert(terminator);
  function_.insert_before(terminator, function_.add_instruction(copy, operands));
  ++moved_;
}

void Hoister::replace_reads() {
  auto replacement = [&](ValueId value) { return chosen_.contains(value) ? copies_.at(value) : value; };
  for (BlockId block : loop_) {
    for (InstructionId id : function_.instructions_in(block)) {
      for (Operand& operand : function_.operands_of(id))
        if (operand.is(OperandKind::value) && !operand.is_definition())
          operand.id = replacement(operand.as_value()).index();
      if (ValueId guard = function_.instructions[id].guard) function_.instructions[id].guard = replacement(guard);
    }
    for (EdgeId edge : function_.successors(block))
      for (ValueId& argument : function_.arguments(edge))
        argument = replacement(argument);
  }
  function_.changed();
}

size_t Hoister::run(unsigned register_limit) {
  find_invariants();
  for (const Candidate& candidate : candidates()) {
    if (candidate.registers > register_limit) continue;
    register_limit -= candidate.registers;
    for (InstructionId id : needed_for(candidate.value))
      move(id);
    chosen_.insert(candidate.value);
  }
  if (chosen_.empty()) return 0;
  replace_reads();
  ir::remove_dead_code(function_);
  return moved_;
}

} // namespace

size_t hoist_invariants(ir::Function& function, BlockId preheader, BlockId header, unsigned register_limit) {
  return Hoister(function, preheader, header).run(register_limit);
}

} // namespace ptxrewrite::transforms::legal
