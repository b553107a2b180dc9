// Bounds of values: from linear forms if there are any, otherwise from the bounds of the operands of the defining
// instruction. i / w, i % w and c * n + r have no linear form, but have bounds if i, w, c, n and r have.
//
//   ValueBounds bounds(forms, attempt);
//   if (auto proof = bounds.prove(instruction, operand, {0, UINT32_MAX})) ... bounds.rest_on(*proof, ...)
//
// Bounds apply to an exact integer whose low bits the value holds. An operation that depends on more than the low bits
// (division, comparison, extension) also requires that the integer fits its type.
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
  // In one launch, as launch predicates write them; empty if unknown. Non-empty bounds hold if the conditions hold.
  std::string low, high;
  // The bound is only that of a type, or is pessimistic, so that a condition on it would hardly ever hold. No
  // conditions are derived from such bounds.
  bool weak_low = false, weak_high = false;
  std::set<std::string> conditions;
  std::set<ir::ObligationId> obligations; // low and high depend on these

  bool has_text() const { return !low.empty(); }
};

// Why an operand stays in a range: every part is required.
struct RangeProof {
  std::vector<ir::ObligationId> obligations;
  std::string predicate; // on the launch; empty if none is needed
  std::string statement; // "0 <= %r7 <= 4294967295"
  std::string reason;    // if no predicate is needed
};

class BoundsOfValues {
public:
  // Both arguments must outlive this object. Values added later have no bounds.
  BoundsOfValues(ir::LinearForms& forms, const Attempt& attempt);

  // Proves that the exact integer of an operand that `instruction` reads stays within the range, under obligations that
  // the attempt may accept. Returns nothing if that is false in every launch or cannot be shown.
  std::optional<RangeProof> prove(ir::InstructionId instruction, const ir::Operand& operand, ir::Interval range);
  // Enters the proof's obligations into the attempt's ledger.
  void rest_on(Attempt& attempt, const RangeProof& proof, std::string_view raised_by, ir::InstructionId instruction);

  // Bounds of an operand read with `width` bits: those of the exact integer, which are also those of the number that
  // the bits represent in the type.
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
  // Adds the obligations of the trip bounds of the form's loops: those of the operands of the loop exit tests.
  void add_obligations_of_tests(const ir::LinearForm& form, std::set<ir::ObligationId>& obligations) const;

  ir::LinearForms& forms_;
  const ir::Function& function_;
  const Attempt& attempt_;
  size_t analysed_; // number of values
  std::map<ir::ValueId, ValueBounds> known_;
  std::set<ir::ValueId> visiting_;
  unsigned left_ = 0; // how many more values the current query may visit
};

} // namespace ptxrewrite::transforms::legal
