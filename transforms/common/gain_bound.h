// A bound on the gain of a candidate by the machine model, found without lowering the candidate.
//
// A candidate is a copy of a kernel with some instructions changed. A change can save the cost of the instructions that
// it removes or rewrites, of those that are dead then, and of their neighbours in the data flow, with which an
// assembler may combine the remaining ones. If all of these together cost less than a pass must save, the candidate
// cannot win and need not be lowered. Lowering takes most of the time of a choice, and most candidates lose.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/def_use.h"
#include "transforms/manager/analyses.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::transforms::legal {

class GainBound {
public:
  // `original`: the kernel that the candidates are copies of, in SSA form.
  GainBound(const ir::Function& original, AnalysisCache& analyses);

  // An assembler also combines instructions that are not neighbours. Of 1,494 candidates of public kernels that won, 2
  // had saved more than the cost of changes, the worst 2.8 times as much; of 219 of the samples one 3.3 times.
  static constexpr double usual_slack = 3.5;

  // Upper bound of the candidate's saving, in the unit of KernelCost::weighted: the cost of the changed and dead
  // instructions and their neighbours, times `slack`.
  // Instructions of the candidate have the identifiers that they have in the original. Linear in the kernel's size.
  double most_saved_by(const ir::Function& candidate, double slack = usual_slack) const {
    return slack * cost_of_changes(candidate);
  }

private:
  // The cost of changed and dead instructions and their neighbours.
  double cost_of_changes(const ir::Function& candidate) const;

  class Comparison;

  const ir::Function& original_;
  ir::DefUse def_use_;
  std::vector<double> costs_; // by InstructionId
};

} // namespace ptxrewrite::transforms::legal
