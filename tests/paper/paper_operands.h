// Instructions of R2D2's hardware form that its paper does not have: PTX counts in the paper's way.
//
// Figure 6 removes ld.param, mov and cvt from the code and leaves coefficient registers, immediates and linear
// registers as operands of the remaining instructions (§3.1.1, §4.3). Our form keeps these instructions if no address
// needs them, since an assembler removes them.
#pragma once

#include "ir/core/function.h"

#include <map>
#include <vector>

namespace ptxrewrite::tests {

// In the body of the hardware form: loads of a parameter, copies of a number, of an address or of a special register,
// and of a linear register, to a register with no other definition (§3.1.2 keeps multi-write registers). Loads through
// registers, guarded ones, and vectors are instructions.
class PaperOperands {
public:
  bool operator()(const ir::Function& function, ir::InstructionId id);

private:
  std::map<const ir::Function*, std::vector<bool>> known_;
};

} // namespace ptxrewrite::tests
