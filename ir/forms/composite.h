// The composite instructions of the hardware form: `crf.OP1.TYPE.OP2.TYPE d, a, b, c` is OP2(OP1(a, b), c)
// (composite-hpca13 Table 1; the rows crf_* of opcodes.def).
#pragma once

#include "ir/forms/finding.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::ir {

// One half of a composite instruction, as the equivalent PTX instruction.
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

// Returns nullopt if the form is not a composite instruction.
std::optional<CompositeParts> composite_parts(const Form& form);

bool is_composite(const Form& form);

// Width in bits of the composite instruction's index-th source.
unsigned composite_source_bits(const CompositeParts& parts, unsigned index);

// True if the operand is %crf, a read of the composite register file.
bool reads_composite_slot(const Operand& operand);

// Reports invalid reads of the composite register file. The slot holds the intermediate result of the last composite
// instruction, until a call or the end of the block. Checks the kernel's affine stream, too, if there is one.
std::vector<FormFinding> check_composite_slots(const Function& kernel);

} // namespace ptxrewrite::ir
