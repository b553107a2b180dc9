// A kernel while `composite` rewrites it: definitions and reader counts that are updated with each replacement, and
// facts about the bits of a value.
#pragma once

#include "transforms/composite/composite_rules.h"

#include "ir/core/builder.h"
#include "ir/core/function.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::legal::composite {

class Editor {
public:
  // The function must be in SSA form and outlive this object.
  explicit Editor(ir::Function& function);

  ir::Function& function() { return function_; }
  const ir::Function& function() const { return function_; }

  // Returns the instruction that computes the operand, if a term can represent it: one result, no guard, no effect.
  ir::InstructionId computation(const ir::Operand& operand) const;
  bool is_computation(ir::InstructionId id) const {
    if (!id) return false;
    if (id.index() >= computations_.size()) computations_.resize(function_.instructions.size());
    Answer& known = computations_[id.index()];
    if (known == Answer::unknown) known = find_computation(id) ? Answer::yes : Answer::no;
    return known == Answer::yes;
  }
  // Returns the operand's 32 bits if it is a literal or a moved literal.
  std::optional<uint32_t> literal(const ir::Operand& operand) const;
  uint32_t readers(ir::ValueId value) const { return readers_[value.index()]; }
  // Is it read only by conversions to floating point? Before sm_90 these extract a byte from a register themselves.
  bool is_only_converted(ir::ValueId value) const {
    return readers(value) != 0 && converting_readers_[value.index()] == readers(value);
  }
  // Is it read only by comparisons with zero for equality? ptxas merges these with preceding bitwise logic into one
  // instruction. An explicit lop3 there makes ptxas 13.0 crash if the branch on the comparison turns out to skip
  // nothing.
  bool is_only_tested(ir::ValueId value) const {
    return readers(value) != 0 && zero_tests_[value.index()] == readers(value);
  }
  ir::ValueId result(ir::InstructionId id) const { return function_.operands_of(id)[0].as_value(); }
  std::string_view mnemonic(ir::InstructionId id) const { return function_.form_of(id).mnemonic; }
  MnemonicId mnemonic_id(ir::InstructionId id) const {
    if (id.index() >= mnemonics_.size()) mnemonics_.resize(function_.instructions.size());
    MnemonicId& known = mnemonics_[id.index()];
    if (known == 0) known = composite::mnemonic_id(function_.form_of(id));
    return known;
  }
  std::span<const ir::Operand> sources(ir::InstructionId id) const {
    return std::span<const ir::Operand>(function_.operands_of(id)).subspan(1);
  }

  // The row of BYTES that an instruction matches, with the operands of its variables, remembered until the next edit.
  struct BytesMatch {
    const ByteRule* row = nullptr;
    std::vector<std::pair<char, ir::Operand>> operands;
  };
  template <class Find> const BytesMatch& bytes_match(ir::InstructionId id, Find find) const {
    if (id.index() >= bytes_matches_.size()) bytes_matches_.resize(function_.instructions.size());
    auto& [edit, known] = bytes_matches_[id.index()];
    if (edit != edit_) {
      known = find();
      edit = edit_;
    }
    return known;
  }

  // The bits of a 32-bit operand that are 0 for all inputs.
  uint32_t known_zeros(const ir::Operand& operand, unsigned depth = zeros_depth) const;
  // Is the operand the sign extension of its `bits` low bits?
  bool fits(const ir::Operand& operand, unsigned bits, unsigned depth = 5) const;

  // Approximate number of machine instructions for the list, taken by itself.
  unsigned weight(std::span<const ir::InstructionId> list) const;
  // The number of instructions in `inside` that become dead when `root`, which is one of them, is removed. Instructions
  // in other blocks are assumed to stay, because they may run less often.
  unsigned dying(ir::InstructionId root, std::span<const ir::InstructionId> inside) const;

  // --- one replacement: emit instructions before `root`, then replace it by the last one ---
  void begin(ir::InstructionId root);
  ir::ValueId emit(std::string_view mnemonic, ir::ScalarType type, std::span<const ir::Operand> sources);
  // Emits moves that yield both halves of a 64-bit register.
  std::pair<ir::ValueId, ir::ValueId> emit_halves(const ir::Operand& source);
  // Emits an instruction that writes the root's result. Removes the root and all instructions that become unused.
  void finish(std::string_view mnemonic, std::span<const ir::Operand> sources);
  void finish_packed(ir::ValueId low, ir::ValueId high);

private:
  static constexpr unsigned zeros_depth = 5; // operations that known_zeros looks through
  bool find_computation(ir::InstructionId id) const;
  uint32_t compute_zeros(const ir::Operand& operand, unsigned depth) const;
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
  enum class Answer : uint8_t { unknown, no, yes };
  mutable std::vector<Answer> computations_;  // by InstructionId: is_computation()
  mutable std::vector<MnemonicId> mnemonics_; // by InstructionId, 0 if not asked for yet
  // Results of known_zeros, by ValueId and depth: valid if they have the number of the latest edit.
  struct KnownZeros {
    uint32_t edit = 0, zeros = 0;
  };
  mutable std::vector<std::array<KnownZeros, zeros_depth + 1>> zeros_;
  mutable std::vector<std::pair<uint32_t, BytesMatch>> bytes_matches_; // by InstructionId, with the number of the edit
  uint32_t edit_ = 1;
};

} // namespace ptxrewrite::transforms::legal::composite
