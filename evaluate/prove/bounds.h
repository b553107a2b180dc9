// Bounds of terms in exact integers, from what the ISA says of launches alone: the prover's own arithmetic, for what it
// need not take from the analysis.
#pragma once

#include "evaluate/prove/terms.h"

#include <array>
#include <map>
#include <optional>

namespace ptxrewrite::prove {

// Most threads of a block and blocks of a grid in each direction (ISA manual, special registers; .reqntid, .maxntid).
struct LaunchSize {
  std::array<uint64_t, 3> block{1024, 1024, 64};
  std::array<uint64_t, 3> grid{2147483647, 65535, 65535};
  bool is_exact = false; // blocks have these extents, no other ones
};

class Bounds {
public:
  Bounds(Terms& terms, const LaunchSize& size) : terms_(terms), size_(size) {}

  // The leaf is a number from 0 to this. May be said again.
  void limit(AtomId leaf, uint64_t most);
  const std::map<AtomId, uint64_t>& limits() const { return limits_; }
  void set_limits(std::map<AtomId, uint64_t> limits);
  // Of the number that a term of 128 bits, read as signed, is; nothing where it may not fit 128 bits.
  std::optional<ir::Interval> of(TermId exact);
  // A number of 128 bits whose low bits the term has: every coefficient read as signed, every factor as what it is said
  // to be. Where that number fits the width (see `of`), it is what an extension of the term gives.
  TermId exact(TermId narrow, bool is_signed);

private:
  std::optional<ir::Interval> of_factor(AtomId id);
  std::optional<ir::Interval> of_leaf(AtomId id) const;
  std::optional<ir::Interval> of_operation(TermId narrow, bool is_signed);

  Terms& terms_;
  LaunchSize size_;
  std::map<AtomId, uint64_t> limits_;
  std::map<TermId, std::optional<ir::Interval>> known_;
};

bool within(const ir::Interval& inner, const ir::Interval& outer);
// Products and sums; nothing on overflow of 128 bits.
std::optional<ir::Interval> product(const ir::Interval& a, const ir::Interval& b);
std::optional<ir::Interval> sum(const ir::Interval& a, const ir::Interval& b);

} // namespace ptxrewrite::prove
