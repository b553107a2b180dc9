// Fills the tables of value_flow.h in two passes over the operands.
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

ValueFlow::ValueFlow(const Function& function)
    : function_(function), definitions_(function.values.size()), definition_count_(function.values.size()),
      reader_start_(function.values.size() + 1), merges_(function.values.size()) {
  count();
  collect_readers();
  if (!function.is_ssa) merge_as_read();
}

// As read, a register may be read on a path on which its only definition has not executed. Such definitions are
// dropped, so that, as in SSA form, a value depends only on what its definition has read, and following definitions
// terminates.
static void drop_partial_definitions(const Function& function, std::vector<InstructionId>& definitions,
                                     std::vector<uint8_t>& counts) {
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
        InstructionId& definition = definitions[value.index()];
        if (!definition || comes_before(definition, id)) return;
        definition = InstructionId();
        counts[value.index()] = 2; // several values, as if it were written again
      });
  }
}

// Definitions, the number of readers of each value (one index above its own), and old values.
void ValueFlow::count() {
  for (BlockId block : function_.layout) {
    for (ValueId parameter : function_.parameters(block))
      definition_count_[parameter.index()] = 2;
    for (EdgeId edge : function_.successors(block))
      for (ValueId argument : function_.arguments(edge))
        merges_[argument.index()] = true;
    for (InstructionId id : function_.instructions_in(block)) {
      for (const Operand& operand : function_.operands_of(id)) {
        if (!operand.is(OperandKind::value)) continue;
        const uint32_t value = operand.as_value().index();
        if (operand.has(OperandFlag::old_value)) merges_[value] = true;
        if (operand.is_definition()) {
          uint8_t& count = definition_count_[value];
          count = static_cast<uint8_t>(std::min(count + 1, 2));
          definitions_[value] = count == 1 ? id : InstructionId();
        } else if (!operand.has(OperandFlag::old_value)) {
          ++reader_start_[value + 1];
        }
      }
      if (ValueId guard = function_.instructions[id].guard) ++reader_start_[guard.index() + 1];
    }
  }
  if (!function_.is_ssa) drop_partial_definitions(function_, definitions_, definition_count_);
}

void ValueFlow::collect_readers() {
  for (size_t i = 1; i < reader_start_.size(); ++i)
    reader_start_[i] += reader_start_[i - 1];
  readers_.resize(reader_start_.back());
  std::vector<uint32_t> next(reader_start_.begin(), reader_start_.end() - 1);
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block))
      for_each_read(function_, id, [&](ValueId value) { readers_[next[value.index()]++] = id; });
}

// As read, a register that is written more than once merges, and so do values that are copied to one.
void ValueFlow::merge_as_read() {
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      bool into_merged = false;
      for_each_definition(function_, id, [&](ValueId value) {
        const bool merged = definition_count_[value.index()] > 1;
        if (merged) merges_[value.index()] = true;
        into_merged |= merged;
      });
      if (into_merged && function_.is_opcode(id, Opcode::mov))
        for_each_read(function_, id, [&](ValueId value) { merges_[value.index()] = true; });
    }
}

} // namespace ptxrewrite::ir
