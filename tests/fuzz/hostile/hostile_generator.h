// Parts of the generator that the making of its material needs.
#pragma once

#include "tests/fuzz/hostile/hostile_kernel.h"

#include <string>
#include <string_view>

namespace ptxrewrite::fuzz {

// Declarations of the registers %xTYPE_N and the call parameters that statements of the table name.
std::string type_registers(std::string_view body);
// A module whose kernel `k` is this statement.
std::string single_statement_module(std::string_view statement);

} // namespace ptxrewrite::fuzz
