// One PTX statement for each form and operand list of the ISA table: for tools that test whether all of PTX
// is read, emulated, lowered.
#pragma once

#include "ir/isa/isa.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::tests {

struct TableStatement {
  std::string mnemonic;
  // With its operands and a semicolon. If the table has vectors of several lengths, of which only one belongs to the
  // mnemonic, one text for each length.
  std::vector<std::string> texts;
  std::string version; // first PTX version with this form, not below 6.0
  std::string target;  // a target that has it
};

// The spellings of an opcode's rows: a mnemonic for each product of the slots. For `ld` and `st`, whose rows have one
// aspect each: every access with no further words, and every cache and eviction policy with one access.
std::vector<TableStatement> table_statements(std::string_view opcode);

// Declarations of the registers in the statements, for a function's body.
std::string register_declarations();
// Variables and functions in the statements, for the module.
std::string module_declarations();
// The label that branches use, and the statements before it.
std::string label_statements();

} // namespace ptxrewrite::tests
