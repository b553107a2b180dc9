// Which accesses of a kernel can share a 32-bit offset, and what their launch-uniform bases are then: the choice behind
// candidates 2 and 5 of the legal form (uniform_base.h), which does not depend on where the bases are computed.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "transforms/common/attempt.h"
#include "transforms/manager/analyses.h"

#include <optional>
#include <vector>

namespace ptxrewrite::transforms::legal {

// A 32-bit value that, widened and scaled, equals the varying part of addresses up to a constant.
struct SharedOffset {
  ir::ValueId value;   // invalid: to be computed at the entry
  ir::LinearForm form; // 32 bits
  int64_t scale = 1;
  ir::BlockId home; // the block that defines it
  bool is_signed = true;
};

struct BaseAccess {
  ir::InstructionId instruction;
  size_t address = 0; // operand index
  ir::ValueId base;
  ir::ExpressionId constant; // of the address's form
  ir::ObligationId in_range; // the offset can be widened there
  int64_t immediate = 0;     // beside the group's base
};

// Accesses with the same base.
struct BaseGroup {
  ir::ExpressionId base;
  std::vector<BaseAccess> accesses;
};

struct BasePlan {
  SharedOffset offset;
  std::vector<BaseGroup> groups; // not empty
};

// The plans of one kernel. Attempts under one policy that start from it share them (AnalysisCache).
struct BasePlans {
  explicit BasePlans(const ir::Function& kernel) : kernel_(kernel) {}

  // `inductions`: for candidate 5, offsets that are induction variables of a loop.
  const std::vector<BasePlan>& of(AnalysisCache& analyses, const DischargePolicy& policy, bool inductions);

  std::vector<uint32_t> positions; // by InstructionId: position in its block; set by of()

private:
  std::vector<BasePlan> plan(AnalysisCache& analyses, bool inductions);

  const ir::Function& kernel_;
  std::optional<bool> has_loops_;
  std::optional<DischargePolicy> policy_;
  std::optional<std::vector<BasePlan>> plans_[2]; // by `inductions`
};

} // namespace ptxrewrite::transforms::legal
