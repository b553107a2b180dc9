// Known-bits analysis: which bits of a result are constant, given the known bits of its operands (all of them, or known
// zeros). Only as precise as ptxas 13.0; fold.h uses the result. Private to ir/machine.
#pragma once

#include "ir/core/function.h"

#include <cstdint>
#include <optional>
#include <span>

namespace ptxrewrite::ir {

// Known bits of a value of up to 64 bits.
struct KnownBits {
  uint64_t may_be_one = ~uint64_t(0); // all other bits are zero
  bool all = false;                   // the value is `may_be_one`

  static KnownBits literal(uint64_t value) { return {value, true}; }
  static KnownBits below(uint64_t limit); // of numbers from 0 to limit - 1
  std::optional<uint64_t> value() const { return all ? std::optional(may_be_one) : std::nullopt; }
};

// `sources` in text order, each in the width that the form reads. Nothing is known of results of forms other than
// integer arithmetic and logic, shifts, moves and conversions of integers, comparisons of integers, and
// selections.
KnownBits known_result(const Form& form, std::span<const KnownBits> sources);
// Width in bits in which a source is read; 0 for a form whose operands are not integers.
unsigned source_width(const Form& form, size_t source);
unsigned result_width(const Form& form);

} // namespace ptxrewrite::ir
