// The matrix dimensions of a tensor-core instruction: m16n8k16 among the words of its form (PTX ISA 9.7.14,
// 9.7.15).
#pragma once

#include "ir/isa/isa.h"

#include <cstdint>

namespace ptxrewrite::ir {

struct MatrixShape {
  uint16_t m = 0, n = 0, k = 0;
};

// All zero if the form has no shape.
MatrixShape matrix_shape(const Form& form);

} // namespace ptxrewrite::ir
