// One instruction, or one of the other things that stand between instructions in a body.
#pragma once

#include "ir/core/entities.h"
#include "ir/isa/isa.h"
#include "support/source.h"

namespace ptxrewrite::ir {

enum class InstructionKind : uint8_t {
  real,             // a PTX instruction; `form` says which
  location,         // .loc          operands: file, line, column [, symbol text, inlined-at file, line, column];
                    //               .loc_intermediate: its name as text, file, line, column
  pragma,           // .pragma "s";  operands: one text per string
  annotation,       // a //@ comment that our own tools read   operand: text without the slashes
  scope_begin,      // {             only outside SSA form
  scope_end,        // }
  declare_values,   // .reg ...      operand: text; only outside SSA form
  declare_variable, // .local/.shared/.param ...   operand: symbol (local variable)
  label_table,      // L: .branchtargets ...       operand: label_table
  prototype,        // L: .callprototype ...       operand: prototype
  section_begin,    // .r2d2.thread {   hardware forms; operand: integer = SectionKind
  section_end,      // }
  linear_row,       // .r2d2.linear %lr0 = %tr0 + %br0;   operands: definition, value or integer 0, value or integer 0
};

enum class SectionKind : uint8_t { r2d2_coefficient, r2d2_thread, r2d2_block, dac_affine };

struct Instruction {
  InstructionKind kind = InstructionKind::real;
  bool guard_negated = false;
  uint16_t reserved = 0;
  FormId form;            // real instructions only
  ValueId guard;          // @p: a predicate; invalid when the instruction is not guarded
  PoolSpan operands;      // Function::operands
  InstructionId previous; // neighbours in the block
  InstructionId next;
  BlockId block;           // invalid once removed
  SourceRange range;       // where it was read; empty when a pass made it
  ProvenanceId provenance; // the source instruction it stands for; survives transforms

  // In SSA form an instruction that writes registers and keeps something of what they held (Function::keeps_old_values:
  // it is guarded, or adds to its destinations) carries one extra operand per written register, flagged
  // OperandFlag::old_value, behind all others and in the order of the definitions: the value the register keeps in
  // lanes where the guard is false; a value flagged as undefined when no path has written the register before. The
  // printer leaves them out; SSA destruction gives both the same register.
};

} // namespace ptxrewrite::ir
