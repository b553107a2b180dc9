#include "ir/core/builder.h"

#include "ir/core/module.h"

namespace ptxrewrite::ir {

Builder& Builder::at_end(BlockId block) {
  place_ = Place::end;
  block_ = block;
  return *this;
}

Builder& Builder::before(InstructionId position) {
  place_ = Place::before;
  position_ = position;
  return *this;
}

Builder& Builder::after(InstructionId position) {
  place_ = Place::after;
  position_ = position;
  return *this;
}

Builder& Builder::standing_for(InstructionId original) {
  template_.range = function_->instructions[original].range;
  template_.provenance = function_->instructions[original].provenance;
  return *this;
}

Builder& Builder::guarded_by(ValueId predicate, bool negated) {
  template_.guard = predicate;
  template_.guard_negated = negated;
  return *this;
}

Builder& Builder::unguarded() {
  template_.guard = ValueId();
  template_.guard_negated = false;
  return *this;
}

ValueId Builder::new_value(ScalarType type, std::string_view hint, RegisterClass register_class) {
  Value value;
  value.type = type;
  value.register_class = register_class;
  if (!hint.empty()) {
    // The prefix is a hint only: the number avoids clashes with spelled names.
    value.name = function_->module().intern(hint);
    value.number = static_cast<uint32_t>(function_->values.size());
  }
  return function_->add_value(value);
}

InstructionId Builder::put(Instruction instruction, std::span<const Operand> operands) {
  InstructionId id = function_->add_instruction(instruction, operands);
  switch (place_) {
  case Place::nowhere:
    break;
  case Place::end:
    function_->append(block_, id);
    break;
  case Place::before:
    function_->insert_before(position_, id);
    break;
  case Place::after:
    function_->insert_after(position_, id);
    position_ = id; // the next instruction follows this one
    break;
  }
  return id;
}

InstructionId Builder::emit(std::string_view mnemonic, std::span<const Operand> operands) {
  Instruction instruction = template_;
  instruction.kind = InstructionKind::real;
  instruction.form = known_form(mnemonic);
  return put(instruction, operands);
}

InstructionId Builder::emit(std::string_view mnemonic, std::initializer_list<Operand> operands) {
  return emit(mnemonic, std::span<const Operand>(operands.begin(), operands.size()));
}

ValueId Builder::emit_value(std::string_view mnemonic, ScalarType type, std::initializer_list<Operand> sources,
                            std::string_view hint) {
  ValueId result = new_value(type, hint);
  std::vector<Operand> operands{Operand::definition(result)};
  operands.insert(operands.end(), sources);
  emit(mnemonic, operands);
  return result;
}

InstructionId Builder::emit_marker(InstructionKind kind, std::initializer_list<Operand> operands) {
  Instruction instruction = template_;
  instruction.kind = kind;
  instruction.guard = ValueId();
  instruction.guard_negated = false;
  return put(instruction, std::span<const Operand>(operands.begin(), operands.size()));
}

void append_address(std::vector<Operand>& operands, Operand base, int64_t offset) {
  operands.push_back(Operand::group(OperandKind::address, 1, offset));
  operands.push_back(base);
}

} // namespace ptxrewrite::ir
