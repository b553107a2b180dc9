// Obligations that the kernel checks itself: a uniform test before the rewritten body, and the original body after it
// for launches that fail the test. For kernels launched from device code, where no launcher chooses a variant.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"

#include <optional>

namespace ptxrewrite::transforms::legal {

class KernelGuard {
public:
  explicit KernelGuard(const ir::Function& original) : source_(&original) {}

  // Can the obligation's corner sums be computed in 64 bits without overflow, from parameters and dimensions alone, and
  // can this kernel's body be duplicated?
  static bool can_test(const ir::LinearForms& forms, ir::ObligationId id);
  // Adds the test. `forms` may be those of a rewritten copy of the kernel.
  void test(ir::LinearForms& forms, ir::ObligationId id);
  bool empty() const { return !guarded_; }
  // Number of instructions that every warp executes before either body.
  size_t instruction_count() const;

  // Inserts the test before the body of `rewritten`, a rewritten copy of the kernel, and appends the original body.
  void attach(ir::Function& rewritten) const;

private:
  void require(ir::ValueId sum, std::string_view comparison, int64_t bound);

  const ir::Function* source_;
  std::optional<ir::Function> guarded_; // the original, preceded by the block of the test
  ir::BlockId test_;
  ir::ValueId all_hold_; // predicate: all tests so far hold
};

} // namespace ptxrewrite::transforms::legal
