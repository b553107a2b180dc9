// Instructions of R2D2's hardware form that its paper has none for: PTX counts as the paper counts them.
//
// Figure 6 takes ld.param, mov and cvt out of the code and leaves coefficient registers, immediates and linear
// registers as operands of what stays (§3.1.1, §4.3). Our form keeps them where no address needs them, as an assembler
// makes nothing of them.
#pragma once

#include "ir/core/function.h"

#include <map>
#include <vector>

namespace ptxrewrite::tests {

// In the body of the hardware form: a parameter's load, a copy of a number, of an address or of a special register, and
// of a linear register, with a register of its own that nothing else writes (§3.1.2 keeps multi-write registers). Loads
// through registers, guarded ones, and vectors are instructions.
class PaperOperands {
public:
  bool operator()(const ir::Function& function, ir::InstructionId id);

private:
  std::map<const ir::Function*, std::vector<bool>> known_;
};

} // namespace ptxrewrite::tests
