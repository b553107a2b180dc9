// A term's value where the values of its leaves are known: by arithmetic on integers of 128 bits, apart from the
// solver. Counterexamples are judged by it.
#pragma once

#include "evaluate/prove/terms.h"

#include <functional>

namespace ptxrewrite::prove {

class Evaluation {
public:
  // `leaf`: nothing where the leaf's value is not known.
  using LeafValue = std::function<std::optional<UInt128>(AtomId)>;
  Evaluation(const Terms& terms, LeafValue leaf) : terms_(terms), leaf_(std::move(leaf)) {}

  // Nothing where a leaf has no value, or where it is computed by an operation that is known by name alone (floating
  // point) or has no value there (a division by zero).
  std::optional<UInt128> of(TermId id);
  // Leaves have other values now.
  void forget() { known_.clear(); }

private:
  std::optional<UInt128> of_atom(AtomId id);
  std::optional<UInt128> of_operation(const Atom& row, const std::vector<UInt128>& operands);

  const Terms& terms_;
  LeafValue leaf_;
  std::map<AtomId, std::optional<UInt128>> known_;
};

} // namespace ptxrewrite::prove
