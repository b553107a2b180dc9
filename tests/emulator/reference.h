// What an integer instruction must compute, stated apart from the emulator: with exact numbers of 128 bits, and bit by
// bit where the manual describes bits. Types are looked at while the statement runs, nothing is a template, and no
// function of emulator/semantics/ is used.
#pragma once

#include "tests/emulator/statement.h"

#include <functional>
#include <span>

namespace ptxrewrite::test {

struct ReferenceInput {
  // Per source operand in order, elements of groups one by one: its bits. Predicates are 0 or 1 with `!` applied;
  // constants are sign-extended.
  std::span<const Raw> sources;
  bool carry = false;
};

struct ReferenceResult {
  // Per destination register (p|q and {a, b} are several; sinks count): what it holds, of which only the register's
  // width matters.
  std::vector<Raw> written;
  bool carry = false; // what CC.CF holds behind an instruction with .cc
  uint64_t units = 0; // how far the first result may be away from what is stated, as a number: of approximations
};

using Reference = std::function<ReferenceResult(const ReferenceInput&)>;

// Empty for an instruction that nothing is stated about.
Reference reference_for(const Statement& statement);

// The families; each gives an empty function for what is not its own.
Reference arithmetic_reference(const Statement& statement);
Reference bit_reference(const Statement& statement);
Reference selection_reference(const Statement& statement);
Reference video_reference(const Statement& statement);

// The same for instructions with a float in them: by MPFR, and by tables of the values of narrow formats.
Reference float_reference_for(const Statement& statement);
Reference float_arithmetic_reference(const Statement& statement);
Reference float_comparison_reference(const Statement& statement);
Reference approximation_reference(const Statement& statement);
Reference float_conversion_reference(const Statement& statement);

// --- numbers ---

inline Raw low_bits(Raw value, unsigned bits) {
  return bits >= 128 ? value : value & ((Raw{1} << bits) - 1);
}
// The number that the low `bits` bits of value mean.
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
// The number whose bit i is bit(i), for i below `bits`.
template <class Bit> Raw from_bits(unsigned bits, Bit bit) {
  Raw result = 0;
  for (unsigned i = 0; i < bits; ++i)
    if (bit(i)) result |= Raw{1} << i;
  return result;
}

} // namespace ptxrewrite::test
