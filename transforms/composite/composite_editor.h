// A kernel while `composite` rewrites it: definitions and reader counts that stay right from one replacement to the
// next, and what is known about the bits of a value.
#pragma once

#include "ir/core/builder.h"
#include "ir/core/function.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::legal::composite {

class Editor {
public:
  // In SSA form; outlives this.
  explicit Editor(ir::Function& function);

  ir::Function& function() { return function_; }
  const ir::Function& function() const { return function_; }

  // The instruction that computes the operand, if it is one that a term can stand for: one result, no guard, no effect.
  ir::InstructionId computation(const ir::Operand& operand) const;
  bool is_computation(ir::InstructionId id) const;
  // What the operand's 32 bits are, if they are written down: literals, and moves of literals.
  std::optional<uint32_t> literal(const ir::Operand& operand) const;
  uint32_t readers(ir::ValueId value) const { return readers_[value.index()]; }
  // Do only conversions to floating point read it? Before sm_90 they take a byte out of a register by themselves.
  bool is_only_converted(ir::ValueId value) const {
    return readers(value) != 0 && converting_readers_[value.index()] == readers(value);
  }
  // Do only comparisons with zero for equality read it? ptxas makes those and plain logic in front of them one
  // instruction. A lop3 of the text there makes it crash (13.0) where the branch on it turns out to skip nothing.
  bool is_only_tested(ir::ValueId value) const {
    return readers(value) != 0 && zero_tests_[value.index()] == readers(value);
  }
  ir::ValueId result(ir::InstructionId id) const { return function_.operands_of(id)[0].as_value(); }
  std::string_view mnemonic(ir::InstructionId id) const { return function_.form_of(id).mnemonic; }
  std::span<const ir::Operand> sources(ir::InstructionId id) const {
    return std::span<const ir::Operand>(function_.operands_of(id)).subspan(1);
  }

  // Bits that are 0 whatever the inputs are; of 32-bit operands.
  uint32_t known_zeros(const ir::Operand& operand, unsigned depth = 5) const;
  // Is it the sign extension of its `bits` low bits?
  bool fits(const ir::Operand& operand, unsigned bits, unsigned depth = 5) const;

  // Machine instructions that these are alone, roughly.
  unsigned weight(std::span<const ir::InstructionId> list) const;
  // How many of `inside` die when `root`, which is one of them, dies. What stands in another block
  // is taken to stay: it may run less often.
  unsigned dying(ir::InstructionId root, std::span<const ir::InstructionId> inside) const;

  // --- one replacement: make instructions in front of `root`, then put the last one in its place ---
  void begin(ir::InstructionId root);
  ir::ValueId emit(std::string_view mnemonic, ir::ScalarType type, std::span<const ir::Operand> sources);
  // Both halves of a 64-bit register.
  std::pair<ir::ValueId, ir::ValueId> emit_halves(const ir::Operand& source);
  // Writes what the root wrote. The root goes, and all that nobody reads any more.
  void finish(std::string_view mnemonic, std::span<const ir::Operand> sources);
  void finish_packed(ir::ValueId low, ir::ValueId high);

private:
  unsigned width_of_largest(const ir::Operand& operand) const;
  void count(ir::InstructionId id, bool added);
  void put(std::string_view mnemonic, std::span<const ir::Operand> operands);
  void remove(ir::InstructionId id);

  ir::Function& function_;
  std::vector<ir::InstructionId> definitions_; // by ValueId
  std::vector<uint32_t> readers_;              // by ValueId
  std::vector<uint32_t> converting_readers_;   // by ValueId
  std::vector<uint32_t> zero_tests_;           // by ValueId
  ir::InstructionId root_;
};

} // namespace ptxrewrite::transforms::legal::composite
