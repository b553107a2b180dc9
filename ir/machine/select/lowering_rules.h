// Fusion rules: when an instruction is folded into its readers. Private to ir/machine.
//
// Each rule looks at one instruction (the producer) and all its readers. If the readers' machine instructions can do
// its work, it is absorbed: its cost becomes 0, and the rule adjusts the cost of the readers. Few rules look the other
// way, at who makes the operands.
#pragma once

#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/lowering_context.h"

#include <span>
#include <string_view>

namespace ptxrewrite::ir {

struct LoweringRule {
  std::string_view name;
  bool (*apply)(LoweringContext&, InstructionId); // true: the instruction is absorbed
  MachineFact needs = MachineFact::after_tesla;   // of the generation
  bool by_source = false;                         // those who make its operands do its work, not its readers
};
// In the order in which they are tried.
std::span<const LoweringRule> lowering_rules();

} // namespace ptxrewrite::ir
