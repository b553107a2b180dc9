// The kinds of operands that an instruction takes, and statements in which one operand of a form is of another kind
// than a plain register: what the operand matrix enumerates from the ISA table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::test {

struct KindStatement {
  std::string_view kind;
  std::string reading; // the same computation on plain registers and numbers: what a reference states
  std::string before;  // statements that move the operand to where `spelled` has it
  std::string spelled; // the statement that is tested; empty: `reading` itself
  std::string after;   // statements that move the results back
};

// For every operand list of the form and every operand in it: the kinds that the table says it can be.
std::vector<KindStatement> kind_statements(std::string_view mnemonic);

// Declares what the statements use besides forms.h.
std::string_view kind_preamble();

} // namespace ptxrewrite::test
