// What the steps of the memory family share while they plan a kernel: its analyses, the ledger, what was chosen so far.
#pragma once

#include "ir/analysis/linear/extent.h"
#include "transforms/common/attempt.h"
#include "transforms/common/family.h"
#include "transforms/memory/disjoint.h"
#include "transforms/memory/kernel_memory.h"

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
  ir::LinearForms& forms; // of the kernel before the attempt
  ir::AccessExtents extents;
  Disjointness disjoint;
  std::set<ir::InstructionId> read_only; // loads that are or became .nc
  std::string refusal;                   // why no load became one, for people

  // Can the launch be asked?
  bool can_rest_on(const std::vector<Need>& needs) const { return needs.empty() || attempt.policy().launch; }
  void rest_on(const std::vector<Need>& needs, std::string_view raised_by);
  // May the module's target have this form?
  bool is_available(const ir::Form& form) const;
  // The form of a mnemonic, if it is one that the target has.
  std::optional<ir::FormId> form_of(const std::string& mnemonic) const;

private:
  std::set<std::string> stated_;
};

// In an attempt's statistics: loads of bytes that have become one. Who computes with bytes in words finds them there.
inline const std::string joined_bytes = "memory.joined-bytes";

// Loads of what the kernel does not write become ld.global.nc. Returns how many.
size_t make_read_only(Workspace& workspace);
// Adjacent accesses become one. Returns how many there are now.
size_t join_accesses(Workspace& workspace);

} // namespace ptxrewrite::transforms::memory
