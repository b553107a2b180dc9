// Static machine instructions of a kernel `k`, as estimated by the lowering and as assembled by ptxas.
#pragma once

#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests {

struct InstructionCounts {
  int model = 0, ptxas = 0;
};

inline InstructionCounts instruction_counts(const std::string& text, uint32_t capability) {
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  REQUIRE(ir::construct_ssa(read.function()).ok());
  Result<ir::FiguresByFunction> real = ir::machine_figures(text, "sm_" + std::to_string(capability));
  REQUIRE_MESSAGE(real.ok(), text);
  return {static_cast<int>(ir::lower(read.function(), capability).static_instructions()),
          static_cast<int>(real->at("k").instructions)};
}

// True, with a message that the test is skipped, if there is no ptxas.
inline bool skipped_without_ptxas() {
  if (find_ptxas()) return false;
  MESSAGE("skipped: no ptxas");
  return true;
}

} // namespace ptxrewrite::tests
