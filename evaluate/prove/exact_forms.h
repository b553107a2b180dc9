// Distributes extensions: `sext64(x)` of a 32-bit sum is the sum of the extended parts if the sum's exact value fits 32
// bits. That follows from a ledger entry (a range of an exact value whose low bits are `x` up to a literal), or from
// the bounds of the sum's parts. The result is a ring expression over parameters and indices, which has one normal
// form; selections are extended after the choice. So most equal addresses are recognized without a search.
#pragma once

#include "evaluate/prove/bounds.h"
#include "evaluate/prove/solver.h"

#include <functional>
#include <set>

namespace ptxrewrite::prove {

class ExactForms {
public:
  // `is_exact(kind, from, to, range)`: does extending a `from`-bit number give the number itself, for every number in
  // the range? Called once for each distinct step.
  using ExtensionLemma = std::function<bool(AtomKind kind, unsigned from, unsigned to, const ir::Interval& range)>;
  ExactForms(Terms& terms, Bounds& bounds, ExtensionLemma is_exact)
      : terms_(terms), bounds_(bounds), is_exact_(std::move(is_exact)) {}

  // `value` has 128 bits. Facts are numbered in call order.
  void assume(const Assumption& fact);

  // Must be called when more bounds become known.
  void forget() { done_.clear(); }
  // Returns a term with the same bits in every launch for which the facts in `used` hold; adds the facts it needs to
  // `used`.
  TermId rewrite(TermId in, std::set<size_t>& used);

private:
  struct Rewritten {
    TermId term;
    std::set<size_t> used;
  };
  const Rewritten& rewritten(TermId in);
  TermId factor(AtomId id, std::set<size_t>& used);
  std::optional<TermId> extended_choice(const Atom& extension, std::set<size_t>& used);
  // The exact value of the operand of an extension, and the facts it depends on.
  std::optional<Rewritten> exact_value(TermId inner, AtomKind kind, unsigned to);
  TermId without_literal(TermId term, UInt128& literal);

  Terms& terms_;
  Bounds& bounds_;
  ExtensionLemma is_exact_;
  std::vector<Assumption> facts_;
  std::map<TermId, std::vector<size_t>> by_low_bits_; // the key excludes the literal
  std::map<TermId, Rewritten> done_;
  unsigned depth_ = 0;
};

} // namespace ptxrewrite::prove
