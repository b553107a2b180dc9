// Creates instructions at a position in a function. For passes and tests; the reader fills the same tables directly.
#pragma once

#include "ir/core/function.h"

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

class Builder {
public:
  explicit Builder(Function& function) : function_(&function) {}

  // Sets the position at which the next instructions are inserted.
  Builder& at_end(BlockId block);
  Builder& before(InstructionId position);
  Builder& after(InstructionId position);
  // New instructions copy provenance and source range from `original`; none by default.
  Builder& standing_for(InstructionId original);
  Builder& guarded_by(ValueId predicate, bool negated = false);
  Builder& unguarded();

  // Creates a value; `hint` is a name prefix such as "%rd".
  ValueId new_value(ScalarType type, std::string_view hint = {}, RegisterClass register_class = RegisterClass::general);

  // `add.s64 d, a, b`: `mnemonic` must be in the ISA table (asserted). `operands` are in text order, including
  // destinations and groups, in pre-order as they are stored.
  InstructionId emit(std::string_view mnemonic, std::span<const Operand> operands);
  InstructionId emit(std::string_view mnemonic, std::initializer_list<Operand> operands);
  // As above, with a new value as the first operand; returns that value.
  ValueId emit_value(std::string_view mnemonic, ScalarType type, std::initializer_list<Operand> sources,
                     std::string_view hint = {});
  // Inserts a statement that is not a real instruction.
  InstructionId emit_marker(InstructionKind kind, std::initializer_list<Operand> operands);

private:
  enum class Place : uint8_t { nowhere, end, before, after };
  InstructionId put(Instruction instruction, std::span<const Operand> operands);

  Function* function_;
  Place place_ = Place::nowhere;
  BlockId block_;
  InstructionId position_;
  Instruction template_;
};

// `[base + offset]` as operands to append to a list.
void append_address(std::vector<Operand>& operands, Operand base, int64_t offset = 0);

} // namespace ptxrewrite::ir
