// An error in the text of a hardware form.
#pragma once

#include "ir/core/function.h"

#include <string>

namespace ptxrewrite::ir {

struct FormFinding {
  bool in_affine_stream = false; // `instruction` belongs to the kernel's affine stream, not to its body
  InstructionId instruction;     // invalid: the finding concerns the whole kernel
  std::string message;
};

} // namespace ptxrewrite::ir
