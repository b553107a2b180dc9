// The rows of weights.def: the cost of an instruction of one form by itself.
#pragma once

#include "ir/isa/isa.h"
#include "ir/machine/figures/pipe.h"

#include <cstdint>

namespace ptxrewrite::ir {

enum class Subroutine : uint8_t {
  none,
#define WEIGHT(opcode, words, targets, instructions, pipe, subroutine)
#define CLASS_WEIGHT(kind, instructions, pipe)
#define SUBROUTINE(name, instructions, at_place, executed, moves) name,
#include "ir/machine/figures/weights.def"
#undef WEIGHT
#undef CLASS_WEIGHT
#undef SUBROUTINE
  count,
};

struct FormWeight {
  uint16_t instructions = 1;
  Pipe pipe = Pipe::issue;
  Subroutine subroutine = Subroutine::none;
};

// `literal`: whether the last operand is a literal.
FormWeight weight_of(const Form& form, uint32_t compute_capability, bool literal);

struct SubroutineSize {
  uint16_t instructions = 0; // appended once per kernel
  uint16_t at_place = 0;     // per use, on the slow path only
  uint16_t executed = 0;     // of the subroutine, on every execution
  uint16_t moves = 0;        // of operands and results, unless the operands are loaded only for it
};
SubroutineSize size_of(Subroutine subroutine);

} // namespace ptxrewrite::ir
