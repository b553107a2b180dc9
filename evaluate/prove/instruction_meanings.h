// Bit-precise semantics of 32-bit instructions for the solver (PTX ISA 9.0, sections 9.7.1, 9.7.8 and 9.7.9.7): bytes,
// bit fields, counts and dot products, as used by rewrites that join or split words.
#pragma once

#include "evaluate/prove/z3_library.h"

#include <optional>
#include <string_view>
#include <vector>

namespace ptxrewrite::prove {

// The name consists of a mnemonic and the index of the result: "popc.b32.0".
bool has_meaning(std::string_view name);
// Operands may have any width; the low 32 bits are used. Returns nothing if has_meaning() is false, or if an operand
// that must be a literal is not.
std::optional<z3::expr> meaning_of(std::string_view name, const std::vector<z3::expr>& operands);

} // namespace ptxrewrite::prove
