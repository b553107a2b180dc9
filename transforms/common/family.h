// A family of rewrites: places of one kind, each legal on its own terms, among which the ones that pay are chosen.
//
// A family is a pass with one function of its own, `apply`. Shared here: which discharges are open, the options, the
// choice of sites, the remarks for `--explain`, and variants. A kernel that is a variant already gets further
// requirements instead of a variant of its own, so that families of one pipeline add up.
#pragma once

#include "transforms/common/attempt.h"
#include "transforms/manager/pass.h"

#include <compare>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::legal {

// One place where a family's rewrite applies. Ids of instructions are those of the kernel before any of its rewrites.
struct RewriteSite {
  ir::InstructionId instruction;
  std::string text; // for people: "4 ld.global.f32 -> ld.global.v4.f32"

  auto operator<=>(const RewriteSite&) const = default;
};

// Decides which sites of one attempt are rewritten.
class SiteFilter {
public:
  // Takes every site.
  SiteFilter() = default;
  // Takes these sites alone.
  explicit SiteFilter(std::set<RewriteSite> allowed) : allowed_(std::move(allowed)) {}

  // Is the rewrite made at this place? Asked once for each place where it is legal and its obligations can be met,
  // before anything is changed.
  bool take(ir::InstructionId instruction, std::string text);
  const std::vector<RewriteSite>& taken() const { return taken_; }

private:
  std::optional<std::set<RewriteSite>> allowed_;
  std::vector<RewriteSite> taken_; // in the order of the questions
};

struct Family {
  std::string_view name; // of the pass
  // Rewrites attempt.function() (SSA form) at the sites that are taken. Returns whether it changed anything. The same
  // kernel and the same filter give the same result.
  bool (*apply)(Attempt& attempt, SiteFilter& sites, PassContext& context);
  // A pass that makes something of what attempts with this entry in their statistics have prepared, which alone may not
  // pay. They are weighed with it, too, and may stay with it. Such a pass rests on nothing.
  std::string_view finisher = {};
  std::string_view finisher_statistic = {};
};

// The family as a pass on one function in SSA form: all sites, or those that pay.
Change run_family(ir::Function& function, PassContext& context, const Family& family);

// The options that every family has.
std::vector<PassOptionDescription> family_options();
PassDescription family_pass(std::string_view name, std::string_view doc, Change (*run)(ir::Function&, PassContext&));

} // namespace ptxrewrite::transforms::legal
