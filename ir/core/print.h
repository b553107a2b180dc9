// IR to PTX text.
#pragma once

#include "ir/core/module.h"

#include <string>

namespace ptxrewrite::ir {

struct PrintOptions {
  // Write `// #12` after each instruction: its provenance number. For tests and --print-after.
  bool provenance = false;
};

// Prints the whole module. A module as read prints as the same program: same items, statements, names and order; only
// blanks and comments differ (//@ comments are kept). SSA-form functions print in a notation of ptxrewrite, with block
// parameters as `$L(%v1:b32)`, for people and tests; it is not PTX.
std::string print(const Module& module, const PrintOptions& options = {});
void print(const Module& module, std::string& out, const PrintOptions& options = {});
void print(const Function& function, std::string& out, const PrintOptions& options = {});
// One instruction without indentation and line end, as in a listing: `@%p1 add.s32 %r1, %r2, 4;`. SSA values print as
// their name hints only.
std::string print_instruction(const Function& function, InstructionId instruction);

} // namespace ptxrewrite::ir
