// What becomes of an instruction among its neighbours: which ones their readers take over. Private to ir/machine.
//
// Every rule looks at one instruction (the producer) and at all that read its result. If the readers' machine
// instructions can do its work it is absorbed: it weighs nothing, and the rule corrects the readers' weights.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <span>
#include <string_view>

namespace ptxrewrite::ir {

struct LoweringRule {
  std::string_view name;
  bool (*apply)(LoweringContext&, InstructionId); // true: the instruction is absorbed
  bool first_generation = false;                  // compute capability 1.x has it, too
};
// In the order in which they are tried.
std::span<const LoweringRule> lowering_rules();

} // namespace ptxrewrite::ir
