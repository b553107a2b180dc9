// One instruction, or another statement of a function body (declaration, label table, annotation ...).
#pragma once

#include "ir/core/entities.h"
#include "ir/isa/isa.h"
#include "support/source.h"

namespace ptxrewrite::ir {

enum class InstructionKind : uint8_t {
  real,             // a PTX instruction of form `form`
  location,         // .loc          operands: file, line, column [, symbol text, inlined-at file, line, column];
                    //               .loc_intermediate: its name as text, file, line, column
  pragma,           // .pragma "s";  operands: one text per string
  annotation,       // a // a //@ comment that ptxrewrite's tools read   operand: text without the slashes
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
  BlockId block;           // invalid once the instruction is removed
  SourceRange range;       // position in the source; empty for instructions that a pass created
  ProvenanceId provenance; // number of the source instruction it derives from; preserved by transforms

  // In SSA form an instruction that writes registers and may leave part of their old contents (see
  // Function::keeps_old_values: it is guarded, or accumulates into its destinations) has one extra operand per written
  // register. These operands carry OperandFlag::old_value and follow all others, in the order of the definitions. Each
  // is the value of the register in lanes whose guard is false, or a value flagged as undefined if no path has written
  // the register before. The printer omits them; SSA destruction assigns definition and old value the same register.
};

} // namespace ptxrewrite::ir
