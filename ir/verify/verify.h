// Checks the invariants of the IR. The rules are listed at the start of verify.cpp.
#pragma once

#include "ir/core/module.h"

#include <string>
#include <vector>

namespace ptxrewrite::ir {

struct VerifierFinding {
  std::string rule;    // short name, as listed at the start of verify.cpp
  std::string message; // names block and instruction
  InstructionId instruction;
};

// Returns no findings if all rules hold.
std::vector<VerifierFinding> verify(const Function& function);
std::vector<VerifierFinding> verify(const Module& module);

} // namespace ptxrewrite::ir
