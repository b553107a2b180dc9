// The forms of the ISA table and statements that spell them: what the emulator's tests enumerate.
#pragma once

#include "ir/isa/isa.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::test {

// Every mnemonic that the table's rows of an opcode spell, modifiers in the table's order, without the rows that the
// manual does not describe. Rows of `ld` and `st` that speak of cache words only are completed with a type.
std::vector<std::string> mnemonics_of(std::string_view opcode);

// Does every row that has this mnemonic say that GPUs of compute capability `sm` (90) and all later ones run it?
bool runs_on(std::string_view mnemonic, unsigned sm);

// One statement per operand list of a form, all operands as plain as they can be: registers where a register can stand,
// without selectors and signs. Empty for an operand list that the preamble has nothing for.
std::vector<std::string> plain_statements(std::string_view mnemonic);

// The operands of the statements above, with what the table says of each.
struct PlainOperands {
  const ir::OperandShape* shape = nullptr;
  std::vector<std::string> operands;
};
std::vector<PlainOperands> plain_operands_of(std::string_view mnemonic);

// Statements that differ from the plain ones in one operand each: constants, sinks, negated predicates, minus signs,
// elements that nobody wants.
std::vector<std::string> varied_statements(std::string_view mnemonic);

// Declarations in front of a kernel's body that the statements above refer to. Registers are named by class and number:
// %p predicates, %c %h %r %l %q (8 to 128 bits), %f and %d (floats).
std::string_view module_preamble();
std::string_view kernel_preamble();
// The registers among them.
std::string_view kernel_registers();
// Behind the body: the label that branches go to.
std::string_view kernel_end();

} // namespace ptxrewrite::test
