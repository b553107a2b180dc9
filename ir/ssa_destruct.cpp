// Values back to registers: guarded definitions get old values that die there, values are gathered into classes that
// share a register, what the classes could not absorb becomes copies, and the registers are named and declared.
#include "ir/ssa.h"

#include "ir/ssa_classes.h"
#include "ir/ssa_copies.h"
#include "ir/ssa_names.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite::ir {

namespace {

void rewrite_operands(Function& function, const RegisterClasses& classes, size_t known_values) {
  auto representative = [&](ValueId value) {
    // Values that came with the copies are registers already.
    return value.index() < known_values ? classes.representative(value) : value;
  };
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      Instruction& instruction = function.instructions[id];
      if (instruction.guard) instruction.guard = representative(instruction.guard);
      uint32_t kept = 0;
      for (Operand& operand : function.operands_of(id)) {
        if (operand.has(OperandFlag::old_value)) break; // nothing follows these
        if (operand.is(OperandKind::value)) operand.id = representative(operand.as_value()).index();
        ++kept;
      }
      instruction.operands.count = kept;
    }
}

void drop_block_arguments(Function& function) {
  for (BlockId block : function.layout) {
    function.blocks[block].parameters = {};
    for (EdgeId edge : function.successors(block))
      function.edges[edge].arguments = {};
  }
}

// Empty blocks that were kept for their labels lead to the next block again, as the text has it.
void connect_label_stubs(Function& function) {
  for (size_t i = 0; i + 1 < function.layout.size(); ++i) {
    const Block& block = function.blocks[function.layout[i]];
    if (block.first || !block.successors.empty()) continue;
    EdgeId edge = function.add_edge(function.layout[i], function.layout[i + 1]);
    function.set_successors(function.layout[i], {&edge, 1}, true);
  }
}

} // namespace

void destruct_ssa(Function& function) {
  if (!function.is_ssa) return;
  if (function.affine_stream) destruct_ssa(*function.affine_stream);
  std::optional<LiveRanges> ranges;
  ranges.emplace(function);
  if (separate_old_values(function, *ranges)) ranges.emplace(function);
  RegisterClasses classes(function, *ranges);
  size_t known_values = function.values.size();
  insert_edge_copies(function, *ranges, classes);
  rewrite_operands(function, classes, known_values);
  drop_block_arguments(function);
  for (ValueId value : function.values.ids())
    function.values[value].is_undefined = false;
  function.is_ssa = false;
  connect_label_stubs(function);
  name_and_declare_registers(function);
  function.changed();
}

} // namespace ptxrewrite::ir
