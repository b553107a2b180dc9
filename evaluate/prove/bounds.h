// Bounds of terms in exact integers, derived only from the launch limits of the ISA: the prover's own arithmetic, which
// is independent of the analysis.
#pragma once

#include "evaluate/prove/terms.h"

#include <array>
#include <map>
#include <optional>

namespace ptxrewrite::prove {

// Maximum threads per block and blocks per grid in each dimension (ISA manual, special registers; .reqntid, .maxntid).
struct LaunchSize {
  std::array<uint64_t, 3> block{1024, 1024, 64};
  std::array<uint64_t, 3> grid{2147483647, 65535, 65535};
  bool is_exact = false; // blocks have exactly these extents
};

class Bounds {
public:
  Bounds(Terms& terms, const LaunchSize& size) : terms_(terms), size_(size) {}

  // States that the leaf is a number from 0 to `most`. May be repeated.
  void limit(AtomId leaf, uint64_t most);
  const std::map<AtomId, uint64_t>& limits() const { return limits_; }
  void set_limits(std::map<AtomId, uint64_t> limits);
  // Bounds of the number that a 128-bit term, interpreted as signed, represents; nothing if it may not fit 128 bits.
  std::optional<ir::Interval> of(TermId exact);
  // Returns a 128-bit number whose low bits are those of the term: every coefficient is interpreted as signed, every
  // factor by the given signedness. If that number fits the width (see `of`), it equals the extension of the term.
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
