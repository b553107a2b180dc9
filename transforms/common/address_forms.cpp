#include "transforms/common/address_forms.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::transforms {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;

SplitConstant split_constant(ir::ExpressionPool& pool, ExpressionId sum) {
  unsigned width = pool.width(sum);
  uint64_t literal = pool[sum].kind == ir::ExpressionKind::sum ? static_cast<uint64_t>(pool[sum].offset) : 0;
  if (literal == 0) return {sum, 0};
  return {pool.subtract(sum, pool.literal(width, literal)), ir::signed_value(literal, width)};
}

double execution_weight(const ir::LoopForest& loops, BlockId block) {
  constexpr std::array<double, 7> by_depth{1, 10, 100, 1'000, 10'000, 100'000, 1'000'000};
  return by_depth[std::min<size_t>(loops.depth(block), by_depth.size() - 1)];
}

std::optional<size_t> rewritable_address(const ir::Function& function, InstructionId instruction) {
  if (function.instructions[instruction].kind != ir::InstructionKind::real) return std::nullopt;
  const ir::Form& form = function.form_of(instruction);
  switch (form.opcode) {
  case ir::Opcode::ld:
  case ir::Opcode::ldu:
  case ir::Opcode::st:
  case ir::Opcode::atom:
  case ir::Opcode::red:
    break;
  default:
    return std::nullopt;
  }
  if (form.opaque || ir::is_param(form.space)) return std::nullopt;
  std::span<const Operand> operands = function.operands_of(instruction);
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
    if (!operands[i].is(OperandKind::address)) continue;
    if (operands[i].group_size() != 1 || !operands[i + 1].is(OperandKind::value)) return std::nullopt;
    const ir::Value& base = function.values[operands[i + 1].as_value()];
    if (base.register_class != ir::RegisterClass::general || base.vector_width != 1 ||
        operands[i + 1].selector != ir::no_selector || operands[i].has(ir::OperandFlag::bracketed_index))
      return std::nullopt;
    return i;
  }
  return std::nullopt;
}

AddressedAccesses::AddressedAccesses(const ir::Function& function, AnalysisCache& analyses) {
  for (BlockId block : analyses.of<ir::LinearForms>(function).control_flow().reverse_postorder())
    for (InstructionId id : function.instructions_in(block))
      if (const std::optional<size_t> address = rewritable_address(function, id))
        list.emplace_back(id, *address, function.operands_of(id)[*address + 1].as_value());
}

} // namespace ptxrewrite::transforms
