// What DAC's non-affine stream still has to do: not what computes addresses and predicates that come from queues, nor
// branches that decide about nothing else.
#pragma once

#include "ir/flow/def_use.h"
#include "transforms/dac/dac_control.h"

#include <functional>
#include <span>
#include <vector>

namespace ptxrewrite::transforms::dac {

struct BodyNeeds {
  std::vector<bool> instructions; // by InstructionId; branches are not among them
  std::vector<bool> branches;     // by BlockId: where the block's branch matters
};

// True for operands, by instruction and index, that come from a queue.
using Decoupled = std::function<bool(ir::InstructionId, size_t)>;

// `given`: branches whose predicates the body gives to the affine stream.
BodyNeeds body_needs(const ir::Function& function, const ir::ControlFlow& flow, const ir::DefUse& def_use,
                     const ControlDependence& dependence, const Decoupled& decoupled,
                     std::span<const ir::InstructionId> given);

// Branches that do not matter go one way. A loop without effects is left, or not entered.
void drop_branches(ir::Function& function, const ControlDependence& dependence, const std::vector<bool>& needed);

} // namespace ptxrewrite::transforms::dac
