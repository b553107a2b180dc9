// Takes extensions apart: `sext64(x)` of a 32-bit sum is the sum of the extended parts where the sum's exact value fits
// 32 bits. That it does comes from a ledger entry (a range of an exact value whose low bits are `x` but for a literal),
// or from the bounds of what is in the sum. What is left are ring expressions over parameters and indices, which have
// one normal form; what a condition chooses is extended after the choice. So most equal addresses are seen to be equal
// without a search.
#pragma once

#include "evaluate/prove/bounds.h"
#include "evaluate/prove/solver.h"

#include <functional>
#include <set>

namespace ptxrewrite::prove {

class ExactForms {
public:
  // `is_exact(kind, from, to, range)`: does extending a number of `from` bits give the number itself, for every number
  // in the range? Asked once for each different step.
  using ExtensionLemma = std::function<bool(AtomKind kind, unsigned from, unsigned to, const ir::Interval& range)>;
  ExactForms(Terms& terms, Bounds& bounds, ExtensionLemma is_exact)
      : terms_(terms), bounds_(bounds), is_exact_(std::move(is_exact)) {}

  // `value` has 128 bits. Numbered in the order in which they come.
  void assume(const Assumption& fact);

  // More is known of the bounds now.
  void forget() { done_.clear(); }
  // The same bits, in every launch for which the facts of `used` hold; those are added to.
  TermId rewrite(TermId in, std::set<size_t>& used);

private:
  struct Rewritten {
    TermId term;
    std::set<size_t> used;
  };
  const Rewritten& rewritten(TermId in);
  TermId factor(AtomId id, std::set<size_t>& used);
  std::optional<TermId> extended_choice(const Atom& extension, std::set<size_t>& used);
  // The exact value of what is extended, and the facts it rests on.
  std::optional<Rewritten> exact_value(TermId inner, AtomKind kind, unsigned to);
  TermId without_literal(TermId term, UInt128& literal);

  Terms& terms_;
  Bounds& bounds_;
  ExtensionLemma is_exact_;
  std::vector<Assumption> facts_;
  std::map<TermId, std::vector<size_t>> by_low_bits_; // without the literal
  std::map<TermId, Rewritten> done_;
  unsigned depth_ = 0;
};

} // namespace ptxrewrite::prove
