// Checks the invariants of the IR. The rules are listed at the head of verify.cpp.
#pragma once

#include "ir/core/module.h"

#include <string>
#include <vector>

namespace ptxrewrite::ir {

struct VerifierFinding {
  std::string rule;    // short name, as in the list at the head of verify.cpp
  std::string message; // names block and instruction
  InstructionId instruction;
};

// Empty when all rules hold.
std::vector<VerifierFinding> verify(const Function& function);
std::vector<VerifierFinding> verify(const Module& module);

} // namespace ptxrewrite::ir
