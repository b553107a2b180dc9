// The state that the steps of pass `memory` share while they rewrite a kernel: its analyses, the ledger, and previous
// choices.
#pragma once

#include "ir/analysis/linear/extent.h"
#include "transforms/common/attempt.h"
#include "transforms/common/family.h"
#include "transforms/memory/kernel_memory.h"
#include "transforms/memory/need.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::memory {

class Workspace {
public:
  Workspace(legal::Attempt& attempt, legal::SiteFilter& sites, AnalysisCache& analyses);

  legal::Attempt& attempt;
  legal::SiteFilter& sites;
  ir::Function& function;
  KernelMemory memory;
  std::set<ir::InstructionId> read_only; // loads that are .nc, originally or by the rewrite
  std::string refusal;                   // why no load became one, for remarks

  // Of the kernel before the attempt. Computed when first asked for: many kernels have no site.
  ir::LinearForms& forms();
  ir::AccessExtents& extents();

  // Can the conditions be checked at launch?
  bool can_rest_on(const std::vector<Need>& needs) const { return needs.empty() || attempt.policy().launch; }
  void rest_on(const std::vector<Need>& needs, std::string_view raised_by);
  // Does the module's target support the form?
  bool is_available(const ir::Form& form) const;
  // The form with this mnemonic, if the target supports it.
  std::optional<ir::FormId> form_of(const std::string& mnemonic) const;

private:
  AnalysisCache& analyses_;
  std::optional<ir::AccessExtents> extents_;
  std::set<std::string> stated_;
};

// Key in an attempt's statistics: the number of joined loads of bytes. Passes that compute with packed bytes look for
// it.
inline const std::string joined_bytes = "memory.joined-bytes";

// Turns loads of memory that the kernel does not write into ld.global.nc. Returns their number.
size_t make_read_only(Workspace& workspace);
// Moves read-only loads out of loops and turns repeated ones into moves. Returns their number.
size_t reuse_loads(Workspace& workspace);
// Computes addresses from one another if they differ by a launch-uniform number and this saves indices. Returns the
// number of these.
size_t chain_addresses(Workspace& workspace, AnalysisCache& analyses);
// Joins adjacent accesses into vector accesses. Returns the number of these.
size_t join_accesses(Workspace& workspace);

} // namespace ptxrewrite::transforms::memory
