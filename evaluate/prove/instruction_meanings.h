// What instructions on 32 bits do, bit by bit, for the solver (PTX ISA 9.0, sections 9.7.1, 9.7.8 and 9.7.9.7). Bytes,
// bit fields, counts and dot products: what rewrites use that join or split words.
#pragma once

#include <optional>
#include <string_view>
#include <vector>
#include <z3++.h>

namespace ptxrewrite::prove {

// Of an operation's name, a mnemonic and the number of the result: "popc.b32.0".
bool has_meaning(std::string_view name);
// Operands of any width, of which the low 32 bits count. Nothing where has_meaning says no, or where an operand that
// has to be a literal is none.
std::optional<z3::expr> meaning_of(std::string_view name, const std::vector<z3::expr>& operands);

} // namespace ptxrewrite::prove
