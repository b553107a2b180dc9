// Obligations that the kernel checks itself: a uniform test in front of the rewritten body, and the original body
// behind it for launches that fail the test. For kernels that are launched from device code, where nobody chooses a
// variant.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"

#include <optional>

namespace ptxrewrite::transforms::legal {

class KernelGuard {
public:
  explicit KernelGuard(const ir::Function& original) : source_(&original) {}

  // Can the obligation's corner sums be computed in 64 bits without overflow, from parameters and dimensions alone, and
  // can this kernel's body be doubled?
  static bool can_test(const ir::LinearForms& forms, ir::ObligationId id);
  // Adds the test. `forms` may be about a rewritten copy of the kernel.
  void test(ir::LinearForms& forms, ir::ObligationId id);
  bool empty() const { return !guarded_; }
  // Instructions that every warp executes in front of either body.
  size_t instruction_count() const;

  // Puts the test in front of `rewritten`, a rewritten copy of the kernel, and the original body behind it.
  void attach(ir::Function& rewritten) const;

private:
  void require(ir::ValueId sum, std::string_view comparison, int64_t bound);

  const ir::Function* source_;
  std::optional<ir::Function> guarded_; // the original with the test's block in front
  ir::BlockId test_;
  ir::ValueId all_hold_; // predicate: every test so far
};

} // namespace ptxrewrite::transforms::legal
