// Known-bits analysis: which bits of a result are constant, given the known bits of its operands (all of them, or known
// zeros). Only as precise as ptxas 13.0; fold.h uses the result. Private to ir/machine.
#pragma once

#include "ir/core/function.h"

#include <cstdint>
#include <optional>
#include <span>

namespace ptxrewrite::ir {

// Of a value of up to 64 bits.
struct KnownBits {
  uint64_t may_be_one = ~uint64_t(0); // the others are zero
  bool all = false;                   // the value is `may_be_one`

  static KnownBits literal(uint64_t value) { return {value, true}; }
  static KnownBits below(uint64_t limit); // of numbers from 0 on
  std::optional<uint64_t> value() const { return all ? std::optional(may_be_one) : std::nullopt; }
};

// `sources` in the order of the text, each as wide as the form reads it. Nothing certain where the form is not one of
// those below: integer arithmetic and logic, shifts, moves and conversions of integers, comparisons of integers,
// choices.
KnownBits known_result(const Form& form, std::span<const KnownBits> sources);
// Of what each source is read as; 0 for a form whose operands are no integers.
unsigned source_width(const Form& form, size_t source);
unsigned result_width(const Form& form);

} // namespace ptxrewrite::ir
