// Parts of the generator that are also used to make its material.
#pragma once

#include "tests/fuzz/hostile/hostile_kernel.h"

#include <string>
#include <string_view>

namespace ptxrewrite::fuzz {

// Declarations of the registers %xTYPE_N and of the call parameters named by statements of the table.
std::string type_registers(std::string_view body);
// A module whose kernel `k` consists of this statement.
std::string single_statement_module(std::string_view statement);

} // namespace ptxrewrite::fuzz
