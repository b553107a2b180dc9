// The results of PTX instructions over bit-vectors, from the ISA manual: the reference for the proof of composite's
// rules. Independent of the emulator and of the pass.
#pragma once

#include <z3++.h>

#include <string>
#include <vector>

namespace ptxrewrite::tests {

// `mnemonic` in the spelling of the rules. Predicates are bit-vectors of one bit. Throws std::out_of_range if the
// mnemonic has no statement.
z3::expr stated(const std::string& mnemonic, const std::vector<z3::expr>& operands);
bool is_stated(const std::string& mnemonic);

// ISA manual, lop3: the table's bit number 4a + 2b + c. Symbolic tables too, and any width.
z3::expr stated_lop3(const z3::expr& a, const z3::expr& b, const z3::expr& c, const z3::expr& table);

// The sign extension of the low `bits` bits; a itself for 32 or more.
z3::expr sign_extension(const z3::expr& a, const z3::expr& bits);
z3::expr low_ones(const z3::expr& count);
z3::expr population(const z3::expr& a); // of 32 bits

} // namespace ptxrewrite::tests
