// The kinds of operands that an instruction accepts, and statements in which one operand of a form is of another kind
// than a plain register: the operand matrix enumerates these from the ISA table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::test {

struct KindStatement {
  std::string_view kind;
  std::string reading; // the same computation on plain registers and numbers, for the reference
  std::string before;  // statements that move the operand to its place in `spelled`
  std::string spelled; // the tested statement; empty: `reading` itself
  std::string after;   // statements that move the results back
};

// For every operand list of the form and every operand in it: all kinds that the table allows.
std::vector<KindStatement> kind_statements(std::string_view mnemonic);

// Declares the names that the statements use in addition to forms.h.
std::string_view kind_preamble();

} // namespace ptxrewrite::test
