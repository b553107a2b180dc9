// Predicates on instructions, operands and readers that the fusion rules share. Private to ir/machine.
#pragma once

#include "ir/core/module.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/lowering_context.h"

#include <algorithm>

namespace ptxrewrite::ir {

inline bool is_int32(const Form& form) {
  ScalarType type = form.type();
  return type == ScalarType::u32 || type == ScalarType::s32 || type == ScalarType::b32;
}
inline bool is_int64(const Form& form) {
  ScalarType type = form.type();
  return type == ScalarType::u64 || type == ScalarType::s64 || type == ScalarType::b64;
}
inline bool is_add(const Form& form) {
  return form.opcode == Opcode::add && !form.carry_out && !form.has(Modifier::sat);
}
inline bool is_add_or_sub(const Form& form) {
  return (form.opcode == Opcode::add || form.opcode == Opcode::sub) && !form.carry_out && !form.has(Modifier::sat);
}
inline bool is_logic(const Form& form) {
  return form.opcode == Opcode::and_ || form.opcode == Opcode::or_ || form.opcode == Opcode::xor_ ||
         form.opcode == Opcode::not_;
}

inline bool is_memory(const Form& form) {
  return form.kind == InstructionClass::load || form.kind == InstructionClass::store ||
         form.kind == InstructionClass::atomic;
}

// The variable whose address the operand is; nullptr if there is none.
inline const Variable* named_variable(const LoweringContext& context, const Operand& operand) {
  if (!operand.is(OperandKind::symbol)) return nullptr;
  const SymbolRef symbol = operand.as_symbol();
  if (symbol.kind() == SymbolRef::Kind::local_variable) return &context.function.variables[symbol.variable()];
  return symbol.kind() == SymbolRef::Kind::module_variable ? &context.function.module().variables[symbol.variable()]
                                                           : nullptr;
}

// True for the address of a variable in local memory: an offset from the stack pointer.
inline bool names_local_variable(const LoweringContext& context, const Operand& operand) {
  const Variable* variable = named_variable(context, operand);
  return variable && variable->space == StateSpace::local;
}

// True for the address of a variable in shared memory that is known only when the kernel runs.
inline bool names_shared_window(const LoweringContext& context, const Operand& operand) {
  const Variable* variable = named_variable(context, operand);
  return variable && is_shared(variable->space) && !has(context.capability, MachineFact::known_shared_places);
}

// True for ATOMS.POPC.INC: the number of active lanes is added in shared memory, without an operand or an election.
inline bool adds_one_to_shared(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.kind != InstructionClass::atomic || !form.has(Modifier::add) || !is_shared(form.space) || !is_int32(form) ||
      !has(context.capability, MachineFact::warp_reductions))
    return false;
  const Operand* given = context.source(id, 1);
  const ValueId old = context.result(id);
  return given && given->is(OperandKind::integer) && given->immediate == 1 &&
         (!old || (context.values.readers(old).empty() && !context.values.merges(old)));
}

// True if the value has readers, does not merge with other values, and all its readers pass the test. Dead readers are
// not tested; a rule that then changes the readers must skip them.
template <class Test> bool all_readers(const LoweringContext& context, ValueId value, Test&& test) {
  if (!value || context.values.merges(value) || context.values.readers(value).empty()) return false;
  return std::ranges::all_of(context.values.readers(value),
                             [&](InstructionId reader) { return !context.needed[reader.index()] || test(reader); });
}

// The only reader, if it is in the same block, is not absorbed itself and can absorb a producer.
inline InstructionId free_only_reader(const LoweringContext& context, InstructionId id) {
  ValueId value = context.result(id);
  if (!value) return {};
  InstructionId reader = context.values.only_reader(value);
  if (!reader || !context.same_block(id, reader) || context.absorbs[reader.index()]) return {};
  if (context.function.instructions[id].guard) return {};
  return reader;
}

inline void take_over(LoweringContext& context, InstructionId reader) {
  context.absorbs[reader.index()] = true;
}

// True if the accesses can add a constant of this value instead, because all sums that read it pass it on to them.
inline bool hands_constant_on(const LoweringContext& context, ValueId value, int depth = 0) {
  return all_readers(context, value, [&](InstructionId reader) {
    if (context.reads_as_address(reader, value)) return true;
    const Form* user = context.form(reader);
    if (!user || !is_add(*user) || context.function.instructions[reader].guard || depth == 4) return false;
    return is_int32(*user) && hands_constant_on(context, context.result(reader), depth + 1);
  });
}

// True for a literal that an address can add: an integer in range, or (before 9.0) the address of a shared variable.
inline bool is_address_constant(const LoweringContext& context, const Operand* operand) {
  if (!context.is_literal(operand)) return false;
  if (operand->is(OperandKind::integer)) return operand->immediate >= -(1 << 23) && operand->immediate < 1 << 23;
  return operand->is(OperandKind::value) && has(context.capability, MachineFact::known_shared_places);
}

// True if the accesses that read the sum add its constant part themselves.
inline bool is_left_to_accesses(const LoweringContext& context, InstructionId sum) {
  const Form& form = *context.form(sum);
  return is_add(form) && !context.function.instructions[sum].guard &&
         (is_address_constant(context, context.source(sum, 0)) ||
          is_address_constant(context, context.source(sum, 1))) &&
         hands_constant_on(context, context.result(sum));
}

inline bool is_power_of_two(const Operand* operand) {
  return operand && operand->is(OperandKind::integer) && operand->immediate > 0 &&
         (operand->immediate & (operand->immediate - 1)) == 0;
}

} // namespace ptxrewrite::ir
