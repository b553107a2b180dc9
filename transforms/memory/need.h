// A condition on the launch that a rewrite of pass `memory` requires, for the ledger.
#pragma once

#include "ir/core/entities.h"

#include <string>

namespace ptxrewrite::transforms::memory {

struct Need {
  std::string statement;
  std::string predicate;         // in the side file's language
  ir::InstructionId instruction; // for its source position
};

} // namespace ptxrewrite::transforms::memory
