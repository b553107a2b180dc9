// Decides whether two terms are equal in every launch, under assumptions. Z3 over bit-vectors, where it was found at
// build time; products of unknowns are unknowns of their own, whose low bits are the products of the low bits, and
// products only where that gives a counterexample.
#pragma once

#include "evaluate/prove/terms.h"

#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace ptxrewrite::prove {

// The 128-bit term, read as signed, is in the range.
struct Assumption {
  TermId value;
  ir::Interval range;
  std::strong_ordering operator<=>(const Assumption& other) const {
    if (auto order = value <=> other.value; order != 0) return order;
    if (range.low != other.range.low)
      return range.low < other.range.low ? std::strong_ordering::less : std::strong_ordering::greater;
    if (range.high != other.range.high)
      return range.high < other.range.high ? std::strong_ordering::less : std::strong_ordering::greater;
    return std::strong_ordering::equal;
  }
  bool operator==(const Assumption&) const = default;
};

enum class Outcome : uint8_t {
  identical, // one normal form
  proved,
  refuted, // of two terms: there is a counterexample, under the abstraction; of a kernel: one that a launch has
  unknown, // out of time, or made by different operations that the solver only knows by name
};

struct Judgement {
  Outcome outcome = Outcome::unknown;
  std::string detail;
  std::map<std::string, UInt128> model = {}; // of a refutation: values of leaves
};

// The difference of two terms with the assumed values as unknowns: where the inside of an extension is an assumed value
// but for a literal, it is called by name, and one product of each assumed value is eliminated. What is left is about
// few unknowns, often one. Equal terms stay equal; the other way round some freedom is lost, so that only a proof means
// something.
struct Elimination {
  TermId difference;
  std::vector<Assumption> assumptions; // about the unknowns
};
Elimination eliminate(Terms& terms, TermId a, TermId b, const std::vector<Assumption>& assumptions);

class Solver {
public:
  // `effort`: steps of Z3 (its rlimit) for one question; all together get a few times as many.
  Solver(Terms& terms, unsigned effort);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // False: this program was built without Z3; prove_equal knows identical terms only, then.
  static bool available();
  Judgement prove_equal(TermId a, TermId b, const std::vector<Assumption>& assumptions);
  // Is every number of the range what its low `from` bits, extended to `to` bits, are?
  bool extension_is_exact(AtomKind kind, unsigned from, unsigned to, const ir::Interval& range);

private:
  Judgement prove_parts(TermId a, TermId b, const std::vector<Assumption>& assumptions);
  TermId with_shared_operations(TermId a, TermId b, const std::vector<Assumption>& assumptions);

  struct State;
  Terms& terms_;
  std::map<std::tuple<TermId, TermId, std::vector<Assumption>>, Judgement> known_;
  std::map<std::tuple<AtomKind, unsigned, unsigned, ir::Int128, ir::Int128>, bool> known_extensions_;
  std::unique_ptr<State> state_;
};

} // namespace ptxrewrite::prove
