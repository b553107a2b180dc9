// A bound on the gain of a candidate by the machine model, found without lowering the candidate.
//
// A candidate is a copy of a kernel with some instructions changed. A change can save the cost of the instructions that
// it removes or rewrites, of those that are dead then, and of their neighbours in the data flow, with which an
// assembler may combine the remaining ones. If all of these together cost less than a pass must save, the candidate
// cannot win and need not be lowered. Lowering takes most of the time of a choice, and most candidates lose.
//
// A second, tighter bound is for passes that replace computations (composite): the cost of the removed and rewritten
// instructions, minus the cost of the new ones.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/def_use.h"
#include "transforms/common/choice.h"
#include "transforms/manager/analyses.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite::transforms::legal {

// The balance: the cost of removed, dead and rewritten instructions, an access that is rewritten with a quarter of its
// cost, less a share of an instruction for each new one that is no load of a parameter (those are operands in the
// constant bank). The share is 1 where the new instructions are address arithmetic: few are combined with others.
struct GainBalance {
  double new_share = 0.75;
  double slack = 2; // for the bound
};

class GainBound {
public:
  GainBound(const GainBound&) = delete;
  // `original`: the kernel that the candidates are copies of, in SSA form.
  GainBound(const ir::Function& original, AnalysisCache& analyses);

  // An assembler also combines instructions that are not neighbours. Of 1,494 candidates of public kernels that won, 2
  // had saved more than the cost of changes, the worst 2.8 times as much; of 219 of the samples one 3.3 times.
  static constexpr double usual_slack = 3.5;

  // Two upper bounds of a candidate's saving, in the unit of KernelCost::weighted.
  struct Bounds {
    double by_changes = 0; // the cost of changed and dead instructions and their neighbours, times a slack
    double by_balance = 0; // the balance times its slack, see below; only for passes that replace computations
    double least() const { return std::min(by_changes, by_balance); }
  };
  // Fitted to half of the public kernels and the samples (by hash of the file's name) on composite's candidates: in
  // neither half does a candidate that wins need to save more than twice its balance (500 win), and of 1,367 that lose
  // 906 do.
  static constexpr GainBalance usual_balance{};

  // Instructions of the candidate have the identifiers that they have in the original. Linear in the kernel's size.
  Bounds bounds(const ir::Function& candidate, double slack = usual_slack,
                const GainBalance& balance = usual_balance) const;
  double most_saved_by(const ir::Function& candidate, double slack = usual_slack) const {
    return bounds(candidate, slack).by_changes;
  }

private:
  class Comparison;

  const ir::Function& original_;
  std::optional<ir::DefUse> own_def_use_; // if no analysis of the original has one
  const ir::DefUse& def_use_;
  const ModelCost& costs_;
};

} // namespace ptxrewrite::transforms::legal
