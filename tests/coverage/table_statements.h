// One statement of PTX for each form and operand list of the ISA table: what a tool needs that asks whether all of PTX
// is read, emulated, lowered.
#pragma once

#include "ir/isa/isa.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::tests {

struct TableStatement {
  std::string mnemonic;
  // With its operands and a semicolon. Where the table has vectors of several lengths, one of which belongs to the
  // mnemonic, a text for each.
  std::vector<std::string> texts;
  std::string version; // first version of PTX that has the form, not below 6.0
  std::string target;  // one that has it
};

// The spellings of an opcode's rows: a mnemonic for each product of the slots. `ld` and `st`, whose rows describe one
// aspect each: every access with no further words, and every cache and eviction policy with one access.
std::vector<TableStatement> table_statements(std::string_view opcode);

// Declarations of the registers that the statements name, for a function's body.
std::string register_declarations();
// Variables and functions that they name, for the module.
std::string module_declarations();
// The label that branches name, and what comes in front of it.
std::string label_statements();

} // namespace ptxrewrite::tests
