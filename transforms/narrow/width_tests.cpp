// Compilers insert a test before a 64-bit division: if both operands have empty high halves, a 32-bit division
// suffices. If the ranges decide the test, the long division is removed.
#include "transforms/narrow/narrow_sites.h"

#include "ir/edit/fold_control.h"
#include "transforms/common/value_bounds.h"

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr uint64_t high_half = 0xffffffff00000000u;
constexpr const char* width_test_raised = "narrow: a test of high halves";

// For `setp.eq p, a & 0xffffffff00000000, 0`: the masked operand; nothing for other instructions.
std::optional<Operand> tested_high_half(const ir::LinearForms& forms, InstructionId id) {
  const ir::Function& function = forms.function();
  if (!function.is_opcode(id, ir::Opcode::setp) || function.instructions[id].guard) return std::nullopt;
  const ir::Form& form = function.form_of(id);
  const std::span<const Operand> operands = function.operands_of(id);
  if (operands.size() != 3 || ir::bit_width(form.type()) != 64 || ir::is_float(form.type()) ||
      (!form.has(ir::Modifier::eq) && !form.has(ir::Modifier::ne)))
    return std::nullopt;
  if (!operands[0].is(OperandKind::value) || !operands[1].is(OperandKind::value) ||
      operands[1].selector != ir::no_selector || !operands[2].is(OperandKind::integer) || operands[2].immediate != 0)
    return std::nullopt;
  const InstructionId mask = forms.def_use().definition(operands[1].as_value()).instruction;
  if (!mask || !function.is_opcode(mask, ir::Opcode::and_) || function.instructions[mask].guard) return std::nullopt;
  const std::span<const Operand> masked = function.operands_of(mask);
  if (masked.size() != 3 || !masked[2].is(OperandKind::integer) ||
      static_cast<uint64_t>(masked[2].immediate) != high_half)
    return std::nullopt;
  return operands[1];
}

// A quick check before the ranges of a whole kernel are computed.
bool masks_high_halves(const ir::Function& function) {
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (!function.is_opcode(id, ir::Opcode::and_)) continue;
      const std::span<const Operand> operands = function.operands_of(id);
      if (operands.size() == 3 && operands[2].is(OperandKind::integer) &&
          static_cast<uint64_t>(operands[2].immediate) == high_half)
        return true;
    }
  return false;
}

} // namespace

bool fold_width_tests(legal::Attempt& attempt, legal::SiteFilter& sites, AnalysisCache& analyses) {
  ir::Function& function = attempt.function();
  if (!masks_high_halves(function)) return false;
  ir::LinearForms& forms = analyses.of<ir::LinearForms>(attempt.original());
  legal::BoundsOfValues bounds(forms, attempt);
  ir::KnownPredicates known;
  for (ir::BlockId block : forms.control_flow().reverse_postorder())
    for (InstructionId id : function.instructions_in(block)) {
      const std::optional<Operand> masked = tested_high_half(forms, id);
      if (!masked) continue;
      const auto proof = bounds.prove(id, *masked, {0, 0});
      if (!proof || !sites.take(id, "test of high halves -> decided")) continue;
      bounds.rest_on(attempt, *proof, width_test_raised, id);
      known[function.operands_of(id)[0].as_value()] = function.form_of(id).has(ir::Modifier::eq);
    }
  if (known.empty()) return false;
  ir::Replacements replacements;
  ir::fold_guards(function, known, replacements);
  ir::replace(function, replacements);
  function.changed();
  return true;
}

} // namespace ptxrewrite::transforms
