// Results of integer instructions, stated independently of the emulator: with exact 128-bit numbers, and bit by
// bit where the manual describes bits. Types are evaluated at run time, nothing is a template, and no
// function of emulator/semantics/ is used.
#pragma once

#include "tests/emulator/statement.h"

#include <functional>
#include <span>

namespace ptxrewrite::test {

struct ReferenceInput {
  // For each source operand in order (elements of groups separately): its bits. Predicates are 0 or 1 with `!` applied;
  // constants are sign-extended.
  std::span<const Raw> sources;
  bool carry = false;
};

struct ReferenceResult {
  // For each destination register (p|q and {a, b} are several; sinks count): its bits, of which only the register's
  // width is compared.
  std::vector<Raw> written;
  bool carry = false; // value of CC.CF after an instruction with .cc
  uint64_t units = 0; // for approximations: allowed distance of the first result in units of the code
};

using Reference = std::function<ReferenceResult(const ReferenceInput&)>;

// Returns an empty function for instructions that are not covered.
Reference reference_for(const Statement& statement);

// One function per family; each returns an empty function for other instructions.
Reference arithmetic_reference(const Statement& statement);
Reference bit_reference(const Statement& statement);
Reference selection_reference(const Statement& statement);
Reference video_reference(const Statement& statement);

// The same for instructions with a float: by MPFR, and by tables of the values of narrow formats.
Reference float_reference_for(const Statement& statement);
Reference float_arithmetic_reference(const Statement& statement);
Reference float_comparison_reference(const Statement& statement);
Reference approximation_reference(const Statement& statement);
Reference float_conversion_reference(const Statement& statement);

// --- numbers ---

inline Raw low_bits(Raw value, unsigned bits) {
  return bits >= 128 ? value : value & ((Raw{1} << bits) - 1);
}
// The number that the low `bits` bits of value represent.
inline Big number_of(Raw value, unsigned bits, bool is_signed) {
  const Raw low = low_bits(value, bits);
  const bool negative = is_signed && ((low >> (bits - 1)) & 1) != 0;
  return negative ? static_cast<Big>(low) - static_cast<Big>(Raw{1} << bits) : static_cast<Big>(low);
}
inline Big number_of(Raw value, ir::ScalarType type) {
  return number_of(value, ir::bit_width(type), ir::is_signed(type));
}
inline Big clamped_to(Big value, unsigned bits, bool is_signed) {
  const Big high = (Big{1} << (is_signed ? bits - 1 : bits)) - 1;
  const Big low = is_signed ? -high - 1 : Big{0};
  return value < low ? low : value > high ? high : value;
}
inline bool bit_of(Raw value, unsigned index) {
  return index < 128 && ((value >> index) & 1) != 0;
}
// Returns the number whose bit i is bit(i), for i below `bits`.
template <class Bit> Raw from_bits(unsigned bits, Bit bit) {
  Raw result = 0;
  for (unsigned i = 0; i < bits; ++i)
    if (bit(i)) result |= Raw{1} << i;
  return result;
}

} // namespace ptxrewrite::test
