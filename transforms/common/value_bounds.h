// Between which numbers values stay: linear forms where there are any, else what the defining instruction says of its
// operands' bounds. i / w, i % w and c * n + r have no linear form, but bounds as long as i, w, c, n and r have.
//
//   ValueBounds bounds(forms, attempt);
//   if (auto proof = bounds.prove(instruction, operand, {0, UINT32_MAX})) ... bounds.rest_on(*proof, ...)
//
// A value's bounds are about an exact integer whose low bits the value holds: an operation that asks for more than low
// bits (division, comparison, extension) asks that the integer fits its type, too.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "transforms/common/attempt.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::legal {

struct ValueBounds {
  std::optional<ir::Interval> always; // in every launch
  // In one launch, in the words of launch predicates; empty: not known. Where they are known, they hold if the
  // conditions do.
  std::string low, high;
  // The end is no more than that of a type, or pessimistic: a condition on it would hardly ever be met. Conditions are
  // not made of such texts.
  bool weak_low = false, weak_high = false;
  std::set<std::string> conditions;
  std::set<ir::ObligationId> obligations; // what low and high rest on

  bool has_text() const { return !low.empty(); }
};

// Why an operand stays in a range: all of it is needed.
struct RangeProof {
  std::vector<ir::ObligationId> obligations;
  std::string predicate; // of the launch; empty: none is needed
  std::string statement; // "0 <= %r7 <= 4294967295"
  std::string reason;    // where no predicate is needed
};

class BoundsOfValues {
public:
  // Both outlive this. Values that are made later have no bounds.
  BoundsOfValues(ir::LinearForms& forms, const Attempt& attempt);

  // Does the exact integer of an operand that `instruction` reads stay within the range, as far as the attempt may rest
  // on it? Nothing where that is false in every launch, or not to be seen.
  std::optional<RangeProof> prove(ir::InstructionId instruction, const ir::Operand& operand, ir::Interval range);
  // Enters it into the attempt's ledger.
  void rest_on(Attempt& attempt, const RangeProof& proof, std::string_view raised_by, ir::InstructionId instruction);

  // Bounds of an operand as it is read with `width` bits: of the integer, and of the number of the type that these bits
  // are.
  ValueBounds of(ir::InstructionId instruction, const ir::Operand& operand, unsigned width);
  ValueBounds read(ir::InstructionId id, const ir::Operand& operand, unsigned width, bool is_signed);

private:
  ValueBounds of_value(ir::ValueId value);
  ValueBounds linear(ir::ValueId value);
  ValueBounds structural(ir::ValueId value);
  ValueBounds of_parameter(ir::ValueId value);
  ValueBounds computed(ir::InstructionId id, const ir::Form& form);
  ValueBounds divided(ir::InstructionId id, const ir::Form& form, bool as_remainder = false);
  ValueBounds multiplied(ir::InstructionId id, const ir::Form& form);
  std::optional<ValueBounds> remainder_in_parts(ir::InstructionId id);
  ValueBounds masked(const ir::Operand& mask, const ValueBounds& value, unsigned width);
  bool may_rest_on(const ValueBounds& bounds) const;
  // What the trip bounds of the form's loops rest on: the operands of the tests that leave them.
  void add_obligations_of_tests(const ir::LinearForm& form, std::set<ir::ObligationId>& obligations) const;

  ir::LinearForms& forms_;
  const ir::Function& function_;
  const Attempt& attempt_;
  size_t analysed_; // values
  std::map<ir::ValueId, ValueBounds> known_;
  std::set<ir::ValueId> visiting_;
  unsigned left_ = 0; // values that the question at hand may still look at
};

} // namespace ptxrewrite::transforms::legal
