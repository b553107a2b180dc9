// Decides whether two terms are equal in every launch, under assumptions. Uses Z3 over bit-vectors, if it was found at
// build time and is installed; products of unknowns are separate unknowns whose low bits are the products of the low
// bits, and become real products only if the abstraction yields a counterexample.
#pragma once

#include "evaluate/prove/terms.h"

#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace ptxrewrite::prove {

// The 128-bit term, interpreted as signed, is in the range.
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
  identical, // the same normal form
  proved,
  refuted, // of two terms: there is a counterexample under the abstraction; of a kernel: one for an actual launch
  unknown, // out of time, or the terms have different operations that the solver knows only by name
};

struct Judgement {
  Outcome outcome = Outcome::unknown;
  std::string detail;
  std::map<std::string, UInt128> model = {}; // of a refutation: values of the leaves
};

// The difference of two terms with the assumed values as unknowns: an extension whose operand is an assumed value up to
// a literal is replaced by a named unknown, and one product of each assumed value is eliminated. The result has few
// unknowns, often one. Equal terms stay equal; unequal terms may lose generality, so that only a proof is conclusive.
struct Elimination {
  TermId difference;
  std::vector<Assumption> assumptions; // on the unknowns
};
Elimination eliminate(Terms& terms, TermId a, TermId b, const std::vector<Assumption>& assumptions);

class Solver {
public:
  // `effort`: Z3 steps (rlimit) for one query; all queries together get a few times as many.
  Solver(Terms& terms, unsigned effort);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // Returns false if this program was built without Z3 or the library is missing; prove_equal then only recognizes
  // identical terms.
  static bool available();
  Judgement prove_equal(TermId a, TermId b, const std::vector<Assumption>& assumptions);
  // Does every number of the range equal the extension of its low `from` bits to `to` bits?
  bool extension_is_exact(AtomKind kind, unsigned from, unsigned to, const ir::Interval& range);

private:
  Judgement prove_parts(TermId a, TermId b, const std::vector<Assumption>& assumptions);
  Judgement judge(TermId a, TermId b, const std::vector<Assumption>& assumptions); // by Z3
  TermId with_shared_operations(TermId a, TermId b, const std::vector<Assumption>& assumptions);

  struct State;
  Terms& terms_;
  std::map<std::tuple<TermId, TermId, std::vector<Assumption>>, Judgement> known_;
  std::map<std::tuple<AtomKind, unsigned, unsigned, ir::Int128, ir::Int128>, bool> known_extensions_;
  std::unique_ptr<State> state_; // nullptr if Z3 is not available
};

} // namespace ptxrewrite::prove
