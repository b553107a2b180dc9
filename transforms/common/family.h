// A family of rewrites: sites of one kind, each legal independently of the others, of which the profitable ones are
// chosen.
//
// A family is a pass that implements only `apply`. This file shares the rest: the available discharges, the options,
// the choice of sites, the remarks for `--explain`, and variants. A kernel that already is a variant gets additional
// requirements instead of a second variant, so that the families of one pipeline combine.
#pragma once

#include "transforms/common/attempt.h"
#include "transforms/common/choice.h"
#include "transforms/manager/pass.h"

#include <compare>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::legal {

// One site where a family's rewrite applies. Instruction IDs are those of the kernel before any of its rewrites.
struct RewriteSite {
  ir::InstructionId instruction;
  std::string text; // for the user: "4 ld.global.f32 -> ld.global.v4.f32"

  auto operator<=>(const RewriteSite&) const = default;
};

// Decides which sites of one attempt are rewritten.
class SiteFilter {
public:
  // Takes every site.
  SiteFilter() = default;
  // Takes only these sites.
  explicit SiteFilter(std::set<RewriteSite> allowed) : allowed_(std::move(allowed)) {}

  // Is the site to be rewritten? Called once for each site where the rewrite is legal and its obligations can be met,
  // before anything is changed.
  bool take(ir::InstructionId instruction, std::string text);
  const std::vector<RewriteSite>& taken() const { return taken_; }

private:
  std::optional<std::set<RewriteSite>> allowed_;
  std::vector<RewriteSite> taken_; // in call order
};

struct Family {
  std::string_view name; // of the pass
  // Rewrites attempt.function() (SSA form) at the sites that the filter takes. Returns whether it changed anything.
  // Deterministic: the same kernel and filter give the same result.
  bool (*apply)(Attempt& attempt, SiteFilter& sites, PassContext& context);
  // A pass that builds on attempts that have this entry in their statistics, which may not be profitable without it.
  // Such attempts are also evaluated with the finisher applied, and may be kept in that form. A finisher has no
  // obligations.
  std::string_view finisher = {};
  std::string_view finisher_statistic = {};
  double least_gain = least_local_gain; // by the model, of a kernel in place of the original
};

// Runs the family as a pass on one function in SSA form: rewrites all sites, or the profitable ones.
Change run_family(ir::Function& function, PassContext& context, const Family& family);

// The options that every family has.
std::vector<PassOptionDescription> family_options();
PassDescription family_pass(std::string_view name, std::string_view doc, Change (*run)(ir::Function&, PassContext&));

} // namespace ptxrewrite::transforms::legal
