#include "tests/paper/paper_operands.h"

#include "ir/isa/isa.h"

#include <algorithm>

namespace ptxrewrite::tests {
namespace {

bool is_parameter_load(const ir::Form& form) {
  return form.opcode == ir::Opcode::ld && ir::is_param(form.space);
}

// Whether its result could be a coefficient register, an immediate, a special or a linear register as an operand of its
// readers. `copies`: values for which that is so.
bool copies_operand(const ir::Function& function, ir::InstructionId id, const std::vector<bool>& copies) {
  const ir::Instruction& row = function.instructions[id];
  if (row.kind != ir::InstructionKind::real || row.guard) return false;
  const ir::Form& form = function.form_of(id);
  if (form.opcode == ir::Opcode::r2d2_mov) return true;
  const bool is_load = is_parameter_load(form);
  if (!is_load && form.opcode != ir::Opcode::mov && form.opcode != ir::Opcode::cvta) return false;
  return std::ranges::none_of(function.operands_of(id), [&](const ir::Operand& operand) {
    if (operand.is(ir::OperandKind::vector)) return true;
    if (!operand.is(ir::OperandKind::value) || operand.is_definition()) return false;
    const ir::ValueId value = operand.as_value();
    return function.values[value].register_class == ir::RegisterClass::general && !copies[value.index()];
  });
}

// The number of definitions of each register, by an instruction or on an edge.
std::vector<uint32_t> writes_of(const ir::Function& function) {
  std::vector<uint32_t> writes(function.values.size());
  for (ir::BlockId block : function.layout) {
    for (ir::InstructionId id : function.instructions_in(block))
      ir::for_each_definition(function, id, [&](ir::ValueId value) { ++writes[value.index()]; });
    for (ir::EdgeId edge : function.successors(block)) // a value that is merged cannot be replaced by an operand
      for (ir::ValueId value : function.arguments(edge))
        writes[value.index()] += 2;
  }
  return writes;
}

std::vector<bool> operands_in(const ir::Function& function) {
  const std::vector<uint32_t> writes = writes_of(function);
  std::vector<bool> operands(function.instructions.size()), copies(function.values.size());
  bool in_section = false;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      const ir::InstructionKind kind = function.instructions[id].kind;
      if (kind == ir::InstructionKind::section_begin) in_section = true;
      if (kind == ir::InstructionKind::section_end) in_section = false;
      if (in_section || !copies_operand(function, id, copies)) continue;
      bool alone = true;
      ir::for_each_definition(function, id, [&](ir::ValueId value) { alone &= writes[value.index()] == 1; });
      operands[id.index()] = alone;
      if (alone) ir::for_each_definition(function, id, [&](ir::ValueId value) { copies[value.index()] = true; });
    }
  return operands;
}

} // namespace

bool PaperOperands::operator()(const ir::Function& function, ir::InstructionId id) {
  auto [place, is_new] = known_.try_emplace(&function);
  if (is_new) place->second = operands_in(function);
  return place->second[id.index()];
}

} // namespace ptxrewrite::tests
