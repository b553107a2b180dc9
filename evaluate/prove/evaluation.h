// Evaluates a term for known values of its leaves: in 128-bit integer arithmetic, independent of the solver. Decides
// whether a counterexample is valid.
#pragma once

#include "evaluate/prove/terms.h"

#include <functional>

namespace ptxrewrite::prove {

class Evaluation {
public:
  // Returns nothing if the leaf's value is unknown.
  using LeafValue = std::function<std::optional<UInt128>(AtomId)>;
  Evaluation(const Terms& terms, LeafValue leaf) : terms_(terms), leaf_(std::move(leaf)) {}

  // Returns nothing if a leaf has no value, or if an operation is known only by name (floating point) or undefined (a
  // division by zero).
  std::optional<UInt128> of(TermId id);
  // Must be called when leaves change their values.
  void forget() { known_.clear(); }

private:
  std::optional<UInt128> of_atom(AtomId id);
  std::optional<UInt128> of_operation(const Atom& row, const std::vector<UInt128>& operands);

  const Terms& terms_;
  LeafValue leaf_;
  std::map<AtomId, std::optional<UInt128>> known_;
};

} // namespace ptxrewrite::prove
