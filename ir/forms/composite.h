// The composite instructions of the hardware form: `crf.OP1.TYPE.OP2.TYPE d, a, b, c` is OP2(OP1(a, b), c)
// (composite-hpca13 Table 1; the rows crf_* of opcodes.def).
#pragma once

#include "ir/forms/finding.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::ir {

// One half: the PTX instruction that it stands for.
struct CompositePart {
  FormId form;
  // `shl.wide.s32`: the 32-bit source is extended to 64 bits before it is shifted; `form` is shl.b64.
  bool widens = false;
  bool widens_signed = false;
};

struct CompositeParts {
  CompositePart first, second;
  bool reversed = false;          // .rsub: c - intermediate
  bool second_has_operand = true; // false: a conversion
  unsigned intermediate_bits = 32;
};

// Nothing if the form is no composite instruction.
std::optional<CompositeParts> composite_parts(const Form& form);

bool is_composite(const Form& form);

// The bits of a register that the composite instruction reads as its index-th source.
unsigned composite_source_bits(const CompositeParts& parts, unsigned index);

// Is the operand a read of the composite register file: %crf?
bool reads_composite_slot(const Operand& operand);

// What is wrong with the reads of the composite register file: the slot holds the intermediate of the last composite
// instruction, until a call or the end of the block. Checks the affine stream, too, where the kernel has one.
std::vector<FormFinding> check_composite_slots(const Function& kernel);

} // namespace ptxrewrite::ir
