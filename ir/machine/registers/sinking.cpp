// From the last block to the first, so that chains of computations move together: see sinking.h.
#include "ir/machine/registers/sinking.h"

#include "ir/flow/liveness.h"
#include "ir/flow/loops.h"
#include "ir/machine/prepare/value_flow.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

uint32_t words_of(const Function& function, ValueId value) {
  const Value& row = function.values[value];
  return row.type == ScalarType::pred || row.is_undefined ? 0 : (bit_width(row.type) + 31) / 32 * row.vector_width;
}

class Sinking {
public:
  Sinking(Function& function, bool with_predicates)
      : function_(function), with_predicates_(with_predicates), flow_(function), dominators_(function, flow_),
        loops_(function, flow_, dominators_), liveness_(function, flow_), values_(function),
        passed_(function.values.size()), only_jumps_(function.blocks.size()), position_(function.instructions.size()),
        work_(steps_each * function.instructions.size()) {
    for (BlockId block : function.layout) {
      only_jumps_[block.index()] = has_only_jumps(block);
      for (EdgeId edge : function.successors(block))
        for (ValueId value : function.arguments(edge))
          passed_[value.index()].push_back(block);
    }
  }

  bool run() {
    bool moved = false;
    const std::vector<BlockId>& order = flow_.reverse_postorder();
    for (size_t i = order.size(); i-- > 0;) {
      number(order[i]);
      for (InstructionId id = function_.blocks[order[i]].last, before; id; id = before) {
        before = function_.instructions[id].previous;
        moved |= sink(id);
      }
    }
    return moved;
  }

private:
  // Nothing moves into such blocks: they are no code of their own, and loops that end with one are recognised by that.
  bool has_only_jumps(BlockId block) const {
    for (InstructionId id : function_.instructions_in(block))
      if (function_.instructions[id].kind == InstructionKind::real &&
          !function_.form_of(id).effects.transfers_control())
        return false;
    return true;
  }

  bool may_move(InstructionId id) const {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.kind != InstructionKind::real || instruction.guard) return false;
    const Form& form = function_.form_of(id);
    if (form.definitions != 1 || form.opaque) return false;
    if (form.kind == InstructionClass::load && (is_param(form.space) || form.space == StateSpace::constant))
      return !form.effects.volatile_result; // nothing writes there
    return form.effects.pure() && !form.effects.convergent;
  }

  // Values with many readers, far away, would take quadratic time: work_ is limited.
  void spend(size_t steps) const { work_ -= std::min<uint64_t>(work_, steps); }

  // The lowest block that dominates all readers; invalid if there are none.
  BlockId destination(ValueId value) const {
    std::vector<BlockId> blocks = passed_[value.index()];
    for (InstructionId reader : values_.readers(value))
      blocks.push_back(function_.instructions[reader].block);
    if (blocks.empty()) return {};
    BlockId common = *std::ranges::min_element(blocks, {}, [&](BlockId block) { return dominators_.depth(block); });
    spend(blocks.size());
    for (BlockId block : blocks)
      for (; common && !dominators_.dominates(common, block); common = dominators_.immediate_dominator(common))
        spend(1);
    return common;
  }

  // True for a load of shared memory: its latency is short, so that it is issued close to its readers.
  bool is_near_load(InstructionId id) const {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.kind != InstructionKind::real || instruction.guard) return false;
    const Form& form = function_.form_of(id);
    const bool loads = form.kind == InstructionClass::load || form.opcode == Opcode::ldmatrix;
    return loads && is_shared(form.space) && !form.effects.volatile_result && !form.effects.writes_memory;
  }

  bool stops_loads(InstructionId id) const {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.kind != InstructionKind::real) return false;
    const Form& form = function_.form_of(id);
    return form.effects.writes_memory || form.effects.atomic || form.effects.barrier || form.effects.call ||
           form.kind == InstructionClass::fence || form.effects.transfers_control();
  }

  void number(BlockId block) {
    uint32_t at = 0;
    ordered_.clear();
    for (InstructionId id : function_.instructions_in(block)) {
      position_[id.index()] = at++;
      ordered_.push_back(id);
    }
    next_stop_.assign(ordered_.size(), static_cast<uint32_t>(ordered_.size()) - 1);
    for (size_t i = ordered_.size(); i-- > 1;)
      next_stop_[i - 1] = stops_loads(ordered_[i]) ? static_cast<uint32_t>(i) : next_stop_[i];
  }

  // True if the operand has to stay alive longer if it is read at that position of its block only.
  bool lives_shorter(ValueId operand, BlockId block, uint32_t position) const {
    if (!passed_[operand.index()].empty()) return false;
    spend(values_.readers(operand).size());
    return std::ranges::all_of(values_.readers(operand), [&](InstructionId reader) {
      return function_.instructions[reader].block == block && position_[reader.index()] < position;
    });
  }

  // Moves an instruction down, to just before the first instruction of the block that reads its results. A load is not
  // moved across stores, barriers, calls and branches.
  bool delay(InstructionId id, bool loads) {
    const BlockId block = function_.instructions[id].block;
    uint32_t place = UINT32_MAX, made = 0;
    for_each_definition(function_, id, [&](ValueId value) {
      made += words_of(function_, value);
      for (InstructionId reader : values_.readers(value))
        if (function_.instructions[reader].block == block) place = std::min(place, position_[reader.index()]);
    });
    if (loads) place = std::min(place, next_stop_[position_[id.index()]]);
    if (place == UINT32_MAX || place <= position_[id.index()] + 1) return false;
    uint32_t kept = 0;
    for_each_use(function_, id, [&](ValueId operand) {
      if (lives_shorter(operand, block, place)) kept += words_of(function_, operand);
    });
    if (!loads && kept > 0) return false;
    const InstructionId before = ordered_[place];
    if (before == id || function_.instructions[before].block != block) return false;
    function_.remove(id);
    function_.insert_before(before, id);
    position_[id.index()] = place;
    ordered_[place] = id; // a definition that is moved to this place later is inserted before its reader
    return true;
  }

  bool sink(InstructionId id) {
    if (work_ == 0) return false;
    if (is_near_load(id)) return delay(id, true);
    if (!may_move(id)) return false;
    const Operand& result = std::as_const(function_).operands_of(id)[0];
    if (!result.is(OperandKind::value)) return false;
    const ValueId value = result.as_value();
    if (!with_predicates_ && words_of(function_, value) == 0) return false;
    const BlockId from = function_.instructions[id].block;
    BlockId to = destination(value);
    for (; to && to != from && (only_jumps_[to.index()] || loops_.depth(to) > loops_.depth(from));
         to = dominators_.immediate_dominator(to))
      spend(1);
    if (to == from) return delay(id, false);
    if (!to || !dominators_.strictly_dominates(from, to)) return false;
    uint32_t kept = 0;
    for_each_use(function_, id, [&](ValueId operand) {
      if (!liveness_.is_live_in(to, operand)) kept += words_of(function_, operand);
    });
    if (kept > words_of(function_, value)) return false;
    const InstructionId place = first_reader(to, value);
    if (!place) return false;
    function_.remove(id);
    function_.insert_before(place, id);
    return true;
  }

  // The first instruction of the block that reads the value, otherwise the last one.
  InstructionId first_reader(BlockId block, ValueId value) const {
    const std::span<const InstructionId> readers = values_.readers(value);
    for (InstructionId id : function_.instructions_in(block)) {
      spend(readers.size());
      if (std::ranges::find(readers, id) != readers.end()) return id;
    }
    return function_.blocks[block].last;
  }

  static constexpr uint64_t steps_each = 512; // on average, for an instruction

  Function& function_;
  const bool with_predicates_;
  ControlFlow flow_;
  DominatorTree dominators_;
  LoopForest loops_;
  Liveness liveness_;
  ValueFlow values_;
  std::vector<std::vector<BlockId>> passed_; // by ValueId: blocks that pass it on an edge
  std::vector<bool> only_jumps_;             // by BlockId
  std::vector<uint32_t> position_;           // by InstructionId: in the block
  std::vector<InstructionId> ordered_;       // the block's instructions
  mutable uint64_t work_;                    // steps that are left
  std::vector<uint32_t> next_stop_;          // by position: that of the next instruction that no load may pass
};

} // namespace

bool sink_computations(Function& function, bool with_predicates) {
  return function.is_ssa && Sinking(function, with_predicates).run();
}

} // namespace ptxrewrite::ir
