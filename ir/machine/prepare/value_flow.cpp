// Fills the tables of value_flow.h in one pass over the operands, lists of readers in a second one.
#include "ir/machine/prepare/value_flow.h"

#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// Visits registers that the instruction reads as operands or guard; old values do not count as reads.
template <class Visit> void for_each_read(const Function& function, InstructionId id, Visit&& visit) {
  for (const Operand& operand : function.operands_of(id))
    if (operand.is(OperandKind::value) && !operand.is_definition() && !operand.has(OperandFlag::old_value))
      visit(operand.as_value());
  if (ValueId guard = function.instructions[id].guard) visit(guard);
}

} // namespace

ValueDefinitions::ValueDefinitions(const Function& function) : rows_(function.values.size()) {
  count(function);
  if (function.is_ssa) return;
  drop_partial_definitions(function);
  merge_as_read(function);
}

// Definitions, readers and old values.
void ValueDefinitions::count(const Function& function) {
  auto read_by = [](Row& row, InstructionId id) {
    ++row.readers;
    row.reader = id;
  };
  for (BlockId block : function.layout) {
    for (ValueId parameter : function.parameters(block))
      rows_[parameter.index()].definitions = 2;
    for (EdgeId edge : function.successors(block))
      for (ValueId argument : function.arguments(edge))
        rows_[argument.index()].merges = true;
    for (InstructionId id : function.instructions_in(block)) {
      for (const Operand& operand : function.operands_of(id)) {
        if (!operand.is(OperandKind::value)) continue;
        Row& row = rows_[operand.as_value().index()];
        if (operand.is_definition()) {
          row.definitions = static_cast<uint8_t>(std::min(row.definitions + 1, 2));
          row.definition = row.definitions == 1 ? id : InstructionId();
        } else if (!operand.has(OperandFlag::old_value)) {
          read_by(row, id);
        }
        if (operand.has(OperandFlag::old_value)) row.merges = true;
      }
      if (ValueId guard = function.instructions[id].guard) read_by(rows_[guard.index()], id);
    }
  }
}

// As read, a register may be read on a path on which its only definition has not executed. Such definitions are
// dropped, so that, as in SSA form, a value depends only on what its definition has read, and following definitions
// terminates.
void ValueDefinitions::drop_partial_definitions(const Function& function) {
  const ControlFlow flow(function);
  const DominatorTree dominators(function, flow);
  std::vector<uint32_t> place(function.instructions.size()); // position in the layout
  uint32_t next = 0;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      place[id.index()] = next++;
  auto comes_before = [&](InstructionId definition, InstructionId reader) {
    const BlockId above = function.instructions[definition].block, below = function.instructions[reader].block;
    if (above == below) return place[definition.index()] < place[reader.index()];
    return flow.reachable(above) && dominators.dominates(above, below);
  };
  for (BlockId block : function.layout) {
    if (!flow.reachable(block)) continue;
    for (InstructionId id : function.instructions_in(block))
      for_each_read(function, id, [&](ValueId value) {
        Row& row = rows_[value.index()];
        if (!row.definition || comes_before(row.definition, id)) return;
        row.definition = InstructionId();
        row.definitions = 2; // several values, as if it were written again
      });
  }
}

// As read, a register that is written more than once merges, and so do values that are copied to one.
void ValueDefinitions::merge_as_read(const Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      bool into_merged = false;
      for_each_definition(function, id, [&](ValueId value) {
        Row& row = rows_[value.index()];
        row.merges |= row.definitions > 1;
        into_merged |= row.definitions > 1;
      });
      if (into_merged && function.is_opcode(id, Opcode::mov))
        for_each_read(function, id, [&](ValueId value) { rows_[value.index()].merges = true; });
    }
}

ValueFlow::ValueFlow(const Function& function, ValueDefinitions definitions)
    : ValueDefinitions(std::move(definitions)), reader_start_(rows_.size() + 1) {
  for (size_t i = 0; i < rows_.size(); ++i)
    reader_start_[i + 1] = reader_start_[i] + rows_[i].readers;
  readers_.resize(reader_start_.back());
  std::vector<uint32_t> next(reader_start_.begin(), reader_start_.end() - 1);
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      for_each_read(function, id, [&](ValueId value) { readers_[next[value.index()]++] = id; });
}

} // namespace ptxrewrite::ir
