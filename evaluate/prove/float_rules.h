// Equal forms of some floating-point computations, in one form, since a solver knows these operations only by name.
// Each rule holds for all inputs, and is trusted here:
//
//   q - max(q * d - x, -largest) * (1 / d), q = x * (1 / d)  ==  div.rn.f32(x, d)
//       for the literals of transforms/divisor/float_division.h, compared for all floats (`ninja exact_divisors`)
//   cvt.rn.f16(op.f32(f32(a), f32(b)))  ==  op.f16(a, b), op: add, sub, mul, min, max
//       compared for all pairs of halves by tests/unit/transforms/packed
//   cvt.rzi.u32(min(max(x, 0), 255.0))  ==  max(min(cvt.rzi.s32(x), 255), 0)
//       both truncate; NaN is 0 on both sides, and cvt clamps what does not fit
#pragma once

#include "evaluate/prove/terms.h"

#include <map>
#include <optional>

namespace ptxrewrite::prove {

class FloatRules {
public:
  explicit FloatRules(Terms& terms) : terms_(terms) {}

  // A term with the same value, in which no rule's left side occurs.
  TermId rewritten(TermId in);

private:
  TermId factor(AtomId id);
  std::optional<TermId> by_rule(const Atom& row);
  std::optional<TermId> quotient(const Atom& row);
  std::optional<TermId> half(TermId rounded);
  std::optional<TermId> narrowed(TermId widened);
  std::optional<TermId> with_half_literals(const Atom& row);
  std::optional<TermId> clamped(const Atom& row);
  std::optional<Atom> operation(TermId term, std::string_view name, size_t operands) const;
  std::optional<uint32_t> literal(TermId term) const;

  Terms& terms_;
  std::map<TermId, TermId> done_;
};

} // namespace ptxrewrite::prove
