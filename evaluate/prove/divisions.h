// Divisions in one form: multiplications by numbers that the launcher computes from a divisor (pass `divisor`) become
// divisions again, remainders differences, and signed and 64-bit divisions unsigned ones of 32 bits, each if its
// condition is shown. A bit-level solver cannot relate a division to a product.
//
// Only the rules of transforms/divisor/magic.h are used without a proof. Its tests check them for all divisors of 12
// bits and for edges of the others:
//
//   natural32   1 <= d < 2^32, n < 2^31    (n * m) >>> s  ==  n / d
#pragma once

#include "evaluate/prove/terms.h"
#include "transforms/divisor/magic.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::prove {

// A parameter that the launcher computes.
struct AddedParameter {
  std::string expression;
  TermId value; // in the parameter's width
};

class Divisions {
public:
  // `value_of`: the exact value of a launch expression, in 128 bits; nothing if it cannot be read.
  Divisions(Terms& terms, const std::vector<AddedParameter>& added,
            const std::function<std::optional<TermId>(const std::string&)>& value_of);

  // The term in one form. `holds(bit)`: is the bit 1 wherever the term is read?
  TermId rewritten(TermId in, const std::function<bool(TermId)>& holds);

private:
  // The numbers for one divisor.
  struct Magic {
    transforms::MagicForm form = transforms::MagicForm::natural32;
    TermId divisor; // exact
    TermId multiplier, shift, addend;
  };
  // The value of an atom, if the condition holds.
  struct Meaning {
    TermId condition, value;
  };

  std::optional<Meaning> meaning_of(AtomId atom);
  std::optional<Meaning> quotient(AtomId shift);
  std::optional<Meaning> quotient_by(const Magic& magic, TermId shifted, unsigned width);
  std::optional<Meaning> division(AtomId id);
  std::optional<TermId> dividend_of(TermId product, TermId multiplier);
  TermId divided(const char* type, TermId n, TermId divisor);
  TermId in_range(TermId exact, UInt128 low, UInt128 high);

  Terms& terms_;
  std::vector<Magic> magic_;
};

} // namespace ptxrewrite::prove
