// Approximate functions without .ftz scale arguments that may be denormal or huge, in place and under a predicate: what
// that takes beyond or below the rows of expand.def.
//
//   ScaledArguments arguments(context, dominators);
//   arguments.weigh(id, *context.form(id));      // for each needed instruction, in the order of the text
//
// A copy is needed if the argument is read again. Sums of a literal and a power, an absolute value or a square are not
// denormal. Quotients by one divisor share its scaling and its reciprocal.
#pragma once

#include "ir/flow/dominators.h"
#include "ir/machine/prepare/lowering_context.h"

#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace ptxrewrite::ir {

class ScaledArguments {
public:
  ScaledArguments(LoweringContext& context, const DominatorTree& dominators)
      : context_(context), dominators_(dominators), passed_(context.function.instructions.size()) {}

  void weigh(InstructionId id, const Form& form);

private:
  void weigh_quotient(InstructionId id, const Form& form);
  bool shares_divisor(InstructionId id, const Form& form, ValueId divisor);
  bool is_read_later(InstructionId id, const Operand* argument) const;
  bool is_quotient_by(InstructionId id, const Form& form, ValueId divisor) const;
  bool is_never_small(const Operand* argument) const;
  bool is_first(const Operand& dividend);
  uint16_t& cost(InstructionId id) { return context_.costs[id.index()].weight; }

  LoweringContext& context_;
  const DominatorTree& dominators_;
  std::vector<bool> passed_;                                           // by InstructionId: weighed before
  std::map<std::tuple<ValueId, bool, bool>, InstructionId> quotients_; // by divisor, .full, .ftz: the first
  std::set<int64_t> literals_;                                         // dividends so far
};

} // namespace ptxrewrite::ir
