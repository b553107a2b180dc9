// Pass `memory`: optimizations that ptxas would do if it knew that buffers do not overlap and how they are aligned.
//
// Loads of data that the kernel never writes become ld.global.nc, so that the assembler moves them across stores,
// hoists them out of loops and removes dead stores between them. Adjacent loads and stores become vector accesses. Both
// depend on conditions on the launch: the ranges of addresses that are read and written (ir/analysis/linear/extent.h)
// are disjoint, and addresses are multiples of the vector's size.
#include "ir/core/module.h"
#include "ir/edit/dead_code.h"
#include "ir/isa/isa_availability.h"
#include "transforms/memory/workspace.h"

#include <algorithm>

namespace ptxrewrite::transforms {

namespace memory {

Workspace::Workspace(legal::Attempt& attempt_to_fill, legal::SiteFilter& site_filter, AnalysisCache& analyses)
    : attempt(attempt_to_fill), sites(site_filter), function(attempt.function()), memory(scan_memory(function)),
      analyses_(analyses) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, ir::Opcode::ld) && function.form_of(id).has(ir::Modifier::nc)) read_only.insert(id);
}

ir::LinearForms& Workspace::forms() {
  return analyses_.of<ir::LinearForms>(attempt.original());
}

ir::AccessExtents& Workspace::extents() {
  if (!extents_) extents_.emplace(forms());
  return *extents_;
}

void Workspace::rest_on(const std::vector<Need>& needs, std::string_view raised_by) {
  for (const Need& need : needs)
    if (stated_.insert(need.predicate).second)
      attempt.rest_on(need.statement, raised_by, need.predicate, {}, function.instructions[need.instruction].range);
}

bool Workspace::is_available(const ir::Form& form) const {
  const ir::Module& module = function.module();
  if (form.opaque || form.lax) return false;
  for (Symbol target : module.targets)
    if ((module.text(target).starts_with("sm_") || module.text(target).starts_with("compute_")) &&
        !ir::why_not_available(form, {module.version_major, module.version_minor}, module.text(target)).empty())
      return false;
  return true;
}

std::optional<ir::FormId> Workspace::form_of(const std::string& mnemonic) const {
  const Result<ir::FormId> id = ir::resolve_form(mnemonic);
  return id && is_available(ir::form(*id)) ? std::optional(*id) : std::nullopt;
}

bool apply(legal::Attempt& attempt, legal::SiteFilter& sites, PassContext& context) {
  ir::Function& function = attempt.function();
  if (!function.is_entry || function.module().address_size != 64) return false;
  Workspace workspace(attempt, sites, context.analyses);
  const size_t loads = make_read_only(workspace), reused = loads > 0 ? reuse_loads(workspace) : 0;
  const size_t joined = join_accesses(workspace);
  const bool is_new = std::ranges::none_of(context.remarks, [&](const Remark& remark) {
    return remark.text == workspace.refusal && remark.range.begin == function.header_range.begin;
  });
  if (!workspace.refusal.empty() && is_new) context.remarks.emplace_back(workspace.refusal, function.header_range);
  if (loads + joined == 0) return false;
  const size_t chained = chain_addresses(workspace, context.analyses);
  ir::remove_dead_code(function); // shifts of bytes that are now stored as words
  function.changed();
  attempt.statistics["memory.read-only-loads"] += static_cast<int64_t>(loads);
  attempt.statistics["memory.reused-loads"] += static_cast<int64_t>(reused);
  if (chained > 0) attempt.statistics["memory.chained-addresses"] += static_cast<int64_t>(chained);
  attempt.statistics["memory.vectors"] += static_cast<int64_t>(joined);
  return true;
}

} // namespace memory

namespace {

Change run(ir::Function& function, PassContext& context) {
  return legal::run_family(function, context, {"memory", memory::apply, "composite", memory::joined_bytes});
}

const RegisterPass registration(legal::family_pass(
    "memory", "read-only loads and vector accesses for buffers that are disjoint in the launch", run));

} // namespace

} // namespace ptxrewrite::transforms
