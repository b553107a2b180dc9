// A pass's ledger as facts about terms: ranges of exact values, in 128 bits.
#pragma once

#include "evaluate/prove/solver.h"
#include "transforms/manager/pass.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::prove {

struct LedgerFact {
  Assumption assumption;
  transforms::Discharge discharge = transforms::Discharge::proved;
  std::string statement;
  SourceRange range;
};

// Each entry with an exact statement that the names resolve; one entry may have several. What a name of the statements
// (ir/analysis/linear/exact_range.h) stands for, in 128 bits, is the caller's business.
std::vector<LedgerFact> read_ledger(Terms& terms, std::span<const transforms::Obligation> ledger,
                                    const std::function<std::optional<TermId>(const std::string&)>& name);

} // namespace ptxrewrite::prove
