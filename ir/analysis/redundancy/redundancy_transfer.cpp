#include "ir/analysis/redundancy/redundancy_transfer.h"

#include "ir/core/kernel_parameters.h"
#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::ir::redundancy {

namespace {

constexpr DarsieMark tid_x_mark{MarkStrength::conditional_x, MarkKind::affine};
constexpr DarsieMark tid_y_mark{MarkStrength::conditional_xy, MarkKind::affine};
constexpr DarsieMark lane_mark{MarkStrength::definite, MarkKind::affine};

DarsieMark mark_of_special(SpecialRegister special, Selector selector, MarkRules rules) {
  switch (special) {
  case SpecialRegister::ctaid:
  case SpecialRegister::ntid:
  case SpecialRegister::nctaid:
    return DarsieMark::uniform();
  case SpecialRegister::laneid:
    return rules == MarkRules::all ? lane_mark : DarsieMark{};
  case SpecialRegister::tid:
    if (selector == component_selector(0)) return tid_x_mark;
    if (selector == component_selector(1) && rules == MarkRules::all) return tid_y_mark;
    return {};
  default:
    return {};
  }
}

DarsieMark mark_of_symbol(const Function& function, SymbolRef symbol) {
  switch (symbol.kind()) {
  case SymbolRef::Kind::module_variable:
  case SymbolRef::Kind::function:
    return DarsieMark::uniform();
  case SymbolRef::Kind::local_variable: {
    // Not the parameter blocks of its calls.
    if (is_own_parameter(function, symbol)) return DarsieMark::uniform();
    const StateSpace space = function.variables[symbol.variable()].space;
    const bool is_block_wide = is_shared(space) || space == StateSpace::global || space == StateSpace::constant;
    return is_block_wide ? DarsieMark::uniform() : DarsieMark{};
  }
  case SymbolRef::Kind::undeclared:
    return {};
  }
  return {};
}

// The number of source operands, with groups expanded.
unsigned count_operands(std::span<const Operand> operands) {
  return static_cast<unsigned>(std::ranges::count_if(operands, [](const Operand& o) {
    return !o.is_definition() && !o.is_group() && !o.has(OperandFlag::old_value);
  }));
}

} // namespace

DarsieMark mark_of_source(const Function& function, const Operand& operand, MarkRules rules) {
  switch (operand.kind) {
  case OperandKind::special_register:
    return mark_of_special(static_cast<SpecialRegister>(operand.id), operand.selector, rules);
  case OperandKind::symbol:
    return mark_of_symbol(function, operand.as_symbol());
  case OperandKind::text:
    return {};
  default:
    return DarsieMark::uniform();
  }
}

bool is_repeatable(const Form& form) {
  const Effects& e = form.effects;
  return !(form.opaque || form.extension || e.atomic || e.barrier || e.convergent || e.call || e.branch ||
           e.terminates || e.volatile_result || e.side_effect || e.writes_memory);
}

bool reads_shared_state(const Form& form, bool may_be_local, bool after_acquire) {
  switch (form.space) {
  case StateSpace::local:
  case StateSpace::shared_cluster:
    return false;
  case StateSpace::constant:
    return true;
  case StateSpace::none:
  case StateSpace::generic:
    if (may_be_local) return false;
    break;
  default:
    if (is_param(form.space)) return true;
  }
  // Memory that no thread of the grid writes is constant.
  if (form.has(Modifier::nc) || form.opcode == Opcode::tex || form.opcode == Opcode::tld4) return true;
  return !after_acquire;
}

bool is_block_barrier(const Function& function, InstructionId instruction) {
  const Form& form = function.form_of(instruction);
  if (form.opcode != Opcode::bar && form.opcode != Opcode::barrier) return false;
  if (form.has(Modifier::warp) || form.has(Modifier::cluster)) return false;
  const unsigned operands = count_operands(function.operands_of(instruction));
  if (form.has(Modifier::sync)) return operands == 1; // barrier
  return form.has(Modifier::red) && operands == 2;    // barrier, predicate
}

bool acquires(const Function& function, InstructionId instruction) {
  const Form& form = function.form_of(instruction);
  if (form.opaque || form.effects.call) return true;
  if (form.effects.atomic)
    return std::ranges::any_of(function.operands_of(instruction), [](const Operand& o) { return o.is_definition(); });
  if (form.effects.volatile_result && form.effects.reads_memory) return true;
  if (!form.effects.barrier || is_block_barrier(function, instruction)) return false;
  const bool within_warp = form.opcode == Opcode::bar && form.has(Modifier::warp);
  return !within_warp;
}

MarkKind kind_of_result(const Form& form, std::span<const Operand> operands, std::span<const DarsieMark> marks,
                        DarsieMark around) {
  MarkKind most = around.kind;
  unsigned irregular = 0; // sources that are not uniform
  for (size_t i = 0; i < operands.size(); ++i) {
    most = std::max(most, marks[i].kind);
    irregular += marks[i].kind != MarkKind::uniform;
  }
  if (most == MarkKind::uniform) return MarkKind::uniform;
  if (most == MarkKind::unstructured || around.kind != MarkKind::uniform || form.effects.reads_memory)
    return MarkKind::unstructured;
  auto is_uniform = [&](size_t source) {
    size_t seen = 0;
    for (size_t i = 0; i < operands.size(); ++i)
      if (!operands[i].is_definition() && !operands[i].is_group() && seen++ == source)
        return marks[i].kind == MarkKind::uniform;
    return true;
  };
  const bool integer = is_integer(form.type()) || is_bit_type(form.type());
  bool affine = false;
  switch (form.operation) {
  case Operation::copy:
    affine = irregular == 1 && operands.size() == 2; // packing several registers gives no stride
    break;
  case Operation::convert_address:
    affine = true;
    break;
  case Operation::convert:
    affine = integer && is_integer(form.type(1)) && !form.has(Modifier::sat);
    break;
  case Operation::add:
  case Operation::subtract:
  case Operation::negate:
    affine = integer && !form.has(Modifier::sat);
    break;
  case Operation::shift_left:
    affine = is_uniform(1);
    break;
  case Operation::multiply:
  case Operation::multiply_24:
    affine = integer && irregular == 1 && !form.has(Modifier::hi);
    break;
  case Operation::multiply_add:
  case Operation::multiply_add_24:
    affine = integer && (is_uniform(0) || is_uniform(1)) && !form.has(Modifier::hi) && !form.has(Modifier::sat);
    break;
  case Operation::select:
    affine = is_uniform(2);
    break;
  case Operation::none:
  case Operation::absolute:
  case Operation::divide:
  case Operation::remainder:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::bit_and:
  case Operation::bit_or:
  case Operation::bit_xor:
  case Operation::complement:
  case Operation::logic_of_three:
  case Operation::shift_right:
  case Operation::compare:
    break;
  }
  return affine ? MarkKind::affine : MarkKind::unstructured;
}

} // namespace ptxrewrite::ir::redundancy
