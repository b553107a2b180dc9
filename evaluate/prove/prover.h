// Translation validation of one rewritten kernel: every access, branch condition and stored value of the result takes
// the same bits as in the original, whatever the launch, under what the pass's ledger says.
//
// Both kernels are compared in SSA form, as the pass left it. Instructions with an effect are paired by provenance; a
// register that depends on the path is taken as equal in both where every edge into its block is shown to bring equal
// values (induction over the path). What a load returns is an unknown, the same in both: the accesses before it have
// been shown to be the same.
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
  std::string text; // the two terms, or why there is nothing to compare
  std::string detail;
};

struct KernelProof {
  std::string kernel;
  bool changed = false;
  size_t identical = 0;   // expressions equal by ring laws alone
  size_t proved = 0;      // by the solver
  size_t assumptions = 0; // of the ledger, that were used: each statement once
  std::vector<Problem> problems;
  double seconds = 0;

  bool holds() const { return problems.empty(); }
  // proved; refuted where one operand is; else unknown.
  Outcome outcome() const;
};

struct ProofSettings {
  transforms::RunOptions run;
  unsigned effort = 20'000'000; // steps of the solver for one expression
};

// Each selected kernel of the module. Errors: a kernel without SSA form is no error, it is not rewritten either.
Result<std::vector<KernelProof>> prove_module(const SourceFile& source, const transforms::Pipeline& pipeline,
                                              const ProofSettings& settings);

// Two kernels in place of one and what a pass makes of it: not in SSA form yet, in modules of their own. Instructions
// that stand for one another have the same provenance.
KernelProof prove_pair(ir::Function& original, ir::Function& rewritten,
                       const std::vector<transforms::Obligation>& ledger, unsigned effort);

} // namespace ptxrewrite::prove
