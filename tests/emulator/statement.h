// One statement of PTX as text, split into words and operands, for tests that state its result.
#pragma once

#include "ir/isa/types.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::test {

__extension__ typedef unsigned __int128 Raw; // the bits of a register or constant
__extension__ typedef __int128 Big;          // a number, exact

struct StatementOperand {
  enum class Kind : uint8_t { register_, constant, sink, special, group };
  Kind kind = Kind::constant;
  char letter = 0; // of a register: p c h r l q f d
  unsigned number = 0;
  bool negated = false;                   // !p
  bool minus = false;                     // -a
  std::string selector;                   // "b0", "h10"
  Raw value = 0;                          // of a constant: sign-extended; for 0f and 0d the bits
  std::vector<StatementOperand> elements; // {a, b} or p|q

  bool is_register() const { return kind == Kind::register_; }
  unsigned bits() const; // of the register
};

struct Statement {
  std::string text;
  std::string opcode;
  std::vector<std::string> words; // after the opcode
  std::vector<ir::ScalarType> types;
  std::vector<StatementOperand> operands;

  explicit Statement(std::string_view source);
  bool has(std::string_view word) const;
  ir::ScalarType type(size_t index = 0) const { return index < types.size() ? types[index] : ir::ScalarType::none; }
};

// Packed numbers added by PTX 9.1 to 9.4: tests/unit/emulator/semantics/packed_integers_test.cpp and
// narrow_numbers_test.cpp state their results; the references here do not cover them.
bool is_stated_in_unit_tests(const Statement& statement);

// The registers of an operand, including elements, in order; sinks are left out.
std::vector<const StatementOperand*> registers_of(const StatementOperand& operand);

} // namespace ptxrewrite::test
