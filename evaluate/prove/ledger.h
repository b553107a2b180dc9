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

// Returns each entry whose exact statement has only names that `name` resolves; one entry may have several statements.
// `name` gives the 128-bit term for a name in the statements (ir/analysis/linear/exact_range.h).
std::vector<LedgerFact> read_ledger(Terms& terms, std::span<const transforms::Obligation> ledger,
                                    const std::function<std::optional<TermId>(const std::string&)>& name);

} // namespace ptxrewrite::prove
