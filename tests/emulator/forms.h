// The forms of the ISA table and statements that spell them: the enumeration for the emulator's tests.
#pragma once

#include "ir/isa/isa.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::test {

// All mnemonics that an opcode's rows spell, modifiers in the table's order, without the rows that the
// manual does not describe. Rows of `ld` and `st` with cache modifiers only are completed with a type.
std::vector<std::string> mnemonics_of(std::string_view opcode);

// Do all rows with this mnemonic support GPUs of compute capability `sm` (90) and all later ones?
bool runs_on(std::string_view mnemonic, unsigned sm);

// One statement per operand list of a form, with the plainest operands: registers where a register is allowed,
// without selectors and signs. Empty for an operand list without matching names in the preamble.
std::vector<std::string> plain_statements(std::string_view mnemonic);

// The operands of the statements above, with their patterns in the table.
struct PlainOperands {
  const ir::OperandShape* shape = nullptr;
  std::vector<std::string> operands;
};
std::vector<PlainOperands> plain_operands_of(std::string_view mnemonic);

// Statements that differ from the plain ones in one operand each: constants, sinks, negated predicates, minus signs,
// unused elements.
std::vector<std::string> varied_statements(std::string_view mnemonic);

// Declarations before a kernel's body that the statements above use. Registers are named by class and number:
// %p predicates, %c %h %r %l %q (8 to 128 bits), %f and %d (floats).
std::string_view module_preamble();
std::string_view kernel_preamble();
// The registers among them.
std::string_view kernel_registers();
// After the body: the label that branches use.
std::string_view kernel_end();

} // namespace ptxrewrite::test
