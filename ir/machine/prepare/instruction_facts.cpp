// Collects the facts in one walk over the operands of a function, see instruction_facts.h.
#include "ir/machine/prepare/instruction_facts.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

void note_operands(std::span<const Operand> operands, size_t definitions, InstructionFacts& facts,
                   FunctionContents& contents) {
  bool writes_several = false, keeps_old_value = false;
  size_t next = 0, sources = 0; // the next operand that is in no group before it; sources so far
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (operand.is(OperandKind::value)) {
      if (operand.is_definition()) {
        writes_several |= facts.result.valid();
        facts.result = operand.as_value();
      }
    } else if (operand.is(OperandKind::symbol)) {
      contents.names_variables |= operand.as_symbol().kind() == SymbolRef::Kind::module_variable;
      contents.names_functions |= operand.as_symbol().kind() == SymbolRef::Kind::function;
    }
    const bool is_old = operand.has(OperandFlag::old_value);
    keeps_old_value |= is_old;
    if (i != next) continue;
    next = next_sibling(operands, i);
    if (definitions > 0) {
      --definitions;
      continue;
    }
    if (sources < facts.sources.size() && !is_old)
      facts.sources[sources] = static_cast<uint8_t>(std::min<size_t>(i, InstructionFacts::distant));
    ++sources;
  }
  if (writes_several) facts.result = {};
  contents.keeps_old_values |= keeps_old_value;
}

void note_form(const Form& form, bool guarded, FunctionContents& contents) {
  contents.classes[static_cast<size_t>(form.kind)] = true;
  contents.divides |= form.opcode == Opcode::div || form.opcode == Opcode::rem;
  contents.accesses_vectors |= form.vector_width > 1;
  contents.accesses_shared |= is_shared(form.space);
  if (form.kind == InstructionClass::load) contents.loads_anew |= form.effects.volatile_result || form.effects.atomic;
  contents.guards_memory |= guarded && (form.kind == InstructionClass::load || form.kind == InstructionClass::store ||
                                        form.kind == InstructionClass::atomic || form.kind == InstructionClass::fence);
  contents.has_linear_moves |= form.opcode == Opcode::r2d2_mov;
}

} // namespace

FunctionFacts facts_of(const Function& function) {
  FunctionFacts facts;
  facts.instructions.resize(function.instructions.size());
  for (InstructionId id : function.instructions.ids()) {
    InstructionFacts& row = facts.instructions[id.index()];
    if (function.instructions[id].kind == InstructionKind::real) {
      row.form = &function.form_of(id);
      note_form(*row.form, function.instructions[id].guard.valid(), facts.contents);
    }
    note_operands(function.operands_of(id), row.form ? row.form->definitions : 0, row, facts.contents);
  }
  for (const Value& value : function.values) {
    facts.contents.has_long_floats |= value.type == ScalarType::f64;
    facts.contents.predicates += value.type == ScalarType::pred;
  }
  return facts;
}

} // namespace ptxrewrite::ir
