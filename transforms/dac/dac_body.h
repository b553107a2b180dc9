// The code that remains in DAC's non-affine stream: without the computation of addresses and predicates that come from
// queues, and without branches that control nothing else.
#pragma once

#include "ir/flow/def_use.h"
#include "transforms/dac/dac_control.h"

#include <functional>
#include <span>
#include <vector>

namespace ptxrewrite::transforms::dac {

struct BodyNeeds {
  std::vector<bool> instructions; // by InstructionId; excludes branches
  std::vector<bool> branches;     // by BlockId: the block's branch is needed
};

// Returns true for an operand, by instruction and index, that comes from a queue.
using Decoupled = std::function<bool(ir::InstructionId, size_t)>;

// `given`: branches whose predicates the body passes to the affine stream.
BodyNeeds body_needs(const ir::Function& function, const ir::ControlFlow& flow, const ir::DefUse& def_use,
                     const ControlDependence& dependence, const Decoupled& decoupled,
                     std::span<const ir::InstructionId> given);

// Makes unneeded branches unconditional. A loop without effects is left, or not entered.
void drop_branches(ir::Function& function, const ControlDependence& dependence, const std::vector<bool>& needed);

} // namespace ptxrewrite::transforms::dac
