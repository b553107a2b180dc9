// Translation validation of one rewritten kernel: every access, branch condition and stored value of the result has the
// same bits as in the original, for every launch, under the conditions in the pass's ledger.
//
// Both kernels are compared in SSA form, as the pass left it. Instructions with an effect are paired by provenance; a
// register that depends on the path is assumed equal in both if every edge into its block is shown to pass equal values
// (induction over the path). The result of a load is an unknown, the same in both, because the preceding accesses were
// shown to be equal.
#pragma once

#include "evaluate/prove/solver.h"
#include "ir/core/module.h"
#include "transforms/manager/pipeline.h"

#include <map>
#include <string>
#include <vector>

namespace ptxrewrite::prove {

struct Problem {
  SourceRange range; // of the original's instruction
  Outcome outcome = Outcome::unknown;
  std::string text; // the two terms, or why they cannot be compared
  std::string detail;
};

struct KernelProof {
  std::string kernel;
  bool changed = false;
  size_t identical = 0;   // expressions that are equal by ring laws alone
  size_t proved = 0;      // by the solver
  size_t assumptions = 0; // number of distinct ledger statements that were used
  std::vector<Problem> problems;
  double seconds = 0;

  bool holds() const { return problems.empty(); }
  // proved; refuted if one of the operands is; otherwise unknown.
  Outcome outcome() const;
};

struct ProofSettings {
  transforms::RunOptions run;
  unsigned effort = 20'000'000; // solver steps for one expression
};

// Proves each selected kernel of the module. A kernel without SSA form is not an error, because it is not rewritten
// either.
Result<std::vector<KernelProof>> prove_module(const SourceFile& source, const transforms::Pipeline& pipeline,
                                              const ProofSettings& settings);

// Compares two given kernels instead of a kernel with its rewritten form: not in SSA form yet, in separate modules.
// Corresponding instructions have the same provenance.
KernelProof prove_pair(ir::Function& original, ir::Function& rewritten,
                       const std::vector<transforms::Obligation>& ledger, unsigned effort);

} // namespace ptxrewrite::prove
