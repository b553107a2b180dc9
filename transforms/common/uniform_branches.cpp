// Finds comparisons of tid.x with literals.
#include "transforms/common/uniform_branches.h"

#include "ir/core/module.h"

#include <algorithm>
#include <string>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;
namespace form_index = ir::form_index;

constexpr int64_t warp_size = 32;
// Literals below this limit, plus the largest tid.x, cannot overflow 32 bits, signed or unsigned.
constexpr int64_t small = 1 << 20;

// Returns the literal `c` if the form is tid.x + c.
std::optional<int64_t> offset_from_thread(const ir::ExpressionPool& pool, const ir::LinearForm& form) {
  if (!form.has_coefficients() || form.varies || form.loop_count != 0 || form.width != 32) return std::nullopt;
  if (form.kind != ir::ValueClass::linear) return std::nullopt;
  if (!pool.is_literal(form.coefficients[form_index::tid_x], 1)) return std::nullopt;
  for (unsigned place = form_index::tid_y; place < form_index::count; ++place)
    if (!pool.is_zero(form.coefficients[place])) return std::nullopt;
  const auto constant = pool.literal_value(form.coefficients[form_index::constant]);
  if (!constant) return std::nullopt;
  return ir::signed_value(*constant, 32);
}

bool is_uniform_comparison(const ir::LinearForms& forms, InstructionId id) {
  const ir::Function& function = forms.function();
  const ir::Form& form = function.form_of(id);
  const auto operands = function.operands_of(id);
  if (form.opcode != Opcode::setp || function.instructions[id].guard || ir::bit_width(form.type()) != 32 ||
      !(ir::is_integer(form.type())) || operands.size() != 3 || !operands[0].is(OperandKind::value) ||
      !operands[2].is(OperandKind::integer))
    return false;
  const bool strict =
      form.has(Modifier::lt) || form.has(Modifier::ge) || form.has(Modifier::lo) || form.has(Modifier::hs);
  const bool or_equal =
      form.has(Modifier::le) || form.has(Modifier::gt) || form.has(Modifier::ls) || form.has(Modifier::hi);
  if (strict == or_equal || !operands[1].is(OperandKind::value)) return false;
  // Skips forms with unproved obligations; tid.x plus a literal has none.
  const ValueId compared = operands[1].as_value();
  const std::optional<int64_t> offset = offset_from_thread(forms.expressions(), forms.form(compared));
  if (!offset || !std::ranges::all_of(forms.obligations(compared),
                                      [&](ir::ObligationId one) { return forms.obligation(one).proved; }))
    return false;
  return parts_between_warps(*offset, operands[2].immediate, or_equal);
}

} // namespace

bool parts_between_warps(int64_t offset, int64_t bound, bool or_equal) {
  if (offset < 0 || offset > small || bound < 0 || bound > small) return false;
  // tid.x < bound - offset; tid.x <= bound - offset.
  const int64_t first_on_the_other_side = bound - offset + (or_equal ? 1 : 0);
  return first_on_the_other_side <= 0 || first_on_the_other_side % warp_size == 0;
}

std::vector<InstructionId> warp_uniform_branches(const ir::LinearForms& forms) {
  const ir::Function& function = forms.function();
  std::vector<InstructionId> branches;
  for (BlockId block : function.layout) {
    const InstructionId branch = function.terminator(block);
    if (!branch || !function.is_opcode(branch, Opcode::bra) || function.form_of(branch).has(Modifier::uni)) continue;
    const ValueId guard = function.instructions[branch].guard;
    if (!guard) continue;
    const InstructionId test = forms.def_use().definition(guard).instruction;
    if (test && function.instructions[test].kind == ir::InstructionKind::real && is_uniform_comparison(forms, test))
      branches.push_back(branch);
  }
  return branches;
}

WarpsInRows warps_in_rows(const ir::Function& function) {
  for (const ir::FunctionDirective& directive : function.directives) {
    if (function.module().text(directive.name) != ".reqntid") continue;
    const uint32_t y = directive.count > 1 ? directive.numbers[1] : 1,
                   z = directive.count > 2 ? directive.numbers[2] : 1;
    return directive.numbers[0] % warp_size == 0 || y * z == 1 ? WarpsInRows::always : WarpsInRows::never;
  }
  return WarpsInRows::by_launch;
}

void make_uniform(ir::Function& function, const std::vector<InstructionId>& branches) {
  for (InstructionId branch : branches)
    function.instructions[branch].form = ir::known_form("bra.uni");
  function.changed();
}

} // namespace ptxrewrite::transforms::legal
