// Chooses the sites of a family: all of them if that wins, otherwise subsets, within the budget: those without launch
// conditions if the gain is too small for a variant, halves if some sites do harm.
#include "transforms/common/family.h"

#include "transforms/common/choice.h"
#include "transforms/common/gain_bound.h"
#include "transforms/common/kept_original.h"

#include <algorithm>
#include <deque>
#include <span>

namespace ptxrewrite::transforms::legal {

namespace {

// Number of kernels that are evaluated, besides the original.
constexpr unsigned most_weighed_with_ptxas = 5;
constexpr unsigned most_weighed_by_model = 5;
constexpr size_t most_sites_shown = 24;
constexpr std::string_view alignment_free = "unaligned"; // suffix of the variant without alignment conditions

class FamilyChoice {
public:
  FamilyChoice(ir::Function& function, PassContext& context, const Family& family)
      : function_(function), context_(context), family_(family), policy_(policy()) {}

  Change run();

private:
  struct Try {
    Attempt attempt;
    std::vector<RewriteSite> sites;
  };

  DischargePolicy policy();
  std::optional<Try> apply(SiteFilter filter) { return apply(std::move(filter), policy_); }
  std::optional<Try> apply(SiteFilter filter, DischargePolicy policy);
  // Applies the family's finisher; returns nothing if it changes nothing.
  std::optional<Try> finished(const Try& one) const;
  // Evaluates a rewritten kernel, alone and with the finisher. Returns true if it becomes the best so far.
  bool weigh(std::optional<Try> next);
  bool weigh_as_it_is(Try next);
  bool is_harmed(const KernelCost& cost) const {
    return cost.weighted > before_.weighted || cost.instructions > before_.instructions;
  }
  // Tries parts of the sites after all of them together did not win.
  void try_parts(const std::vector<RewriteSite>& sites);
  void search(const std::vector<RewriteSite>& sites);
  bool measure_original();
  // The same without rewrites that require an alignment at launch, if that is a variant of its own that pays: it runs
  // in launches that fail only these conditions.
  std::optional<Try> without_alignment(const Try& chosen);
  void show_sites(Try& chosen) const;
  Change keep(Try chosen);

  ir::Function& function_;
  PassContext& context_;
  const Family& family_;
  DischargePolicy policy_;

  std::vector<std::string> architectures_;
  KernelCost before_, best_cost_;
  std::optional<Try> best_;
  unsigned left_ = 0; // kernels that may still be evaluated
  std::string lost_;  // why the last one was rejected
  // The kind of that reason. By the model, the gain of all sites is the sum of their gains: if it is too small, the
  // gain of a subset is too small as well. Counts by ptxas are not additive, so that subsets are tried (`harm`).
  enum class Loss : uint8_t { harm, small_gain, small_gain_of_variant } lost_by_ = Loss::harm;
};

DischargePolicy FamilyChoice::policy() {
  const std::vector<std::string> ways = split_words(context_.options.text("discharge", "proved+launch"));
  DischargePolicy policy;
  policy.assumed = context_.assumes(no_index_overflow);
  policy.launch =
      std::ranges::find(ways, "launch") != ways.end() && why_no_launch_terms(function_, family_.name, context_).empty();
  return policy;
}

std::optional<FamilyChoice::Try> FamilyChoice::apply(SiteFilter filter, DischargePolicy policy) {
  Try one{Attempt(function_, policy, family_.name), {}};
  if (!family_.apply(one.attempt, filter, context_)) return std::nullopt;
  one.sites = filter.taken();
  return one;
}

bool FamilyChoice::measure_original() {
  architectures_ = architectures_to_ask(function_.module(), context_);
  std::optional<KernelCost> before = cost_of_original(function_, architectures_, context_);
  if (!before) return false;
  before_ = *std::move(before);
  left_ = architectures_.empty() ? most_weighed_by_model : most_weighed_with_ptxas;
  return true;
}

std::optional<FamilyChoice::Try> FamilyChoice::finished(const Try& one) const {
  const std::string statistic(family_.finisher_statistic);
  const PassDescription* pass = one.attempt.statistics.contains(statistic) ? find_pass(family_.finisher) : nullptr;
  if (!pass) return std::nullopt;
  Try both = one;
  PassContext context;
  context.analyses = AnalysisCache::beside(context_.analyses);
  context.options.set("cost", "model");
  if (pass->run(both.attempt.function(), context) == Change::unchanged || !context.ledger.empty() ||
      !context.additions.empty())
    return std::nullopt;
  for (const auto& [name, count] : context.statistics)
    both.attempt.statistics[name] += count;
  for (const Remark& remark : context.remarks)
    both.attempt.remark("with " + std::string(family_.finisher) + ": " + remark.text, remark.range);
  return both;
}

bool FamilyChoice::weigh(std::optional<Try> next) {
  if (!next) return false;
  std::optional<Try> both = finished(*next);
  const bool alone = weigh_as_it_is(*std::move(next));
  return (both && weigh_as_it_is(*std::move(both))) || alone;
}

bool FamilyChoice::weigh_as_it_is(Try next) {
  // A kernel that already is a variant is replaced in place.
  const bool stands_beside = next.attempt.needs_original() && !original_of(function_);
  const double least_gain = least_gain_by(architectures_, family_.least_gain);
  const Loss small_gain = stands_beside ? Loss::small_gain_of_variant : Loss::small_gain;
  if (architectures_.empty()) {
    const double least = needed_saving(before_, stands_beside, least_gain);
    if (context_.analyses.of<GainBound>(function_).most_saved_by(next.attempt.function()) < least) {
      lost_by_ = small_gain;
      lost_ = std::to_string(next.sites.size()) + " site(s) " + too_small_gain(least, before_);
      return false;
    }
  }
  left_ -= left_ > 0;
  Result<KernelCost> cost = cost_of(next.attempt.function(), architectures_, context_);
  if (!cost) {
    lost_ = "the rewritten kernel is not assembled: " + cost.error().message;
    return false;
  }
  if (!wins(*cost, before_, stands_beside, least_gain)) {
    lost_by_ = !architectures_.empty() || is_harmed(*cost) ? Loss::harm : small_gain;
    lost_ = std::to_string(next.sites.size()) + " site(s) would make it " + comparison(*cost, before_);
    return false;
  }
  if (best_ && !is_better(*cost, best_cost_, before_)) return false;
  best_ = std::move(next);
  best_cost_ = *std::move(cost);
  return true;
}

void FamilyChoice::try_parts(const std::vector<RewriteSite>& sites) {
  switch (lost_by_) {
  case Loss::harm:
    search(sites);
    break;
  case Loss::small_gain_of_variant: {
    DischargePolicy in_place = policy_;
    in_place.launch = false;
    weigh(apply(SiteFilter(), in_place));
    break;
  }
  case Loss::small_gain:
    break;
  }
}

// Searches by halving: the sites of a winning half are kept, a losing half is split again.
void FamilyChoice::search(const std::vector<RewriteSite>& sites) {
  using Part = std::span<const RewriteSite>;
  std::deque<Part> parts; // largest first
  auto split = [&](Part part) {
    if (part.size() < 2) return;
    parts.push_back(part.first(part.size() / 2));
    parts.push_back(part.subspan(part.size() / 2));
  };
  std::set<RewriteSite> kept;
  for (split(sites); !parts.empty() && left_ > 0;) {
    const Part part = parts.front();
    parts.pop_front();
    std::set<RewriteSite> trial = kept;
    trial.insert(part.begin(), part.end());
    if (weigh(apply(SiteFilter(trial))))
      kept = std::move(trial);
    else
      split(part);
  }
}

void FamilyChoice::show_sites(Try& chosen) const {
  chosen.attempt.statistics[std::string(family_.name) + ".sites"] += static_cast<int64_t>(chosen.sites.size());
  size_t shown = 0;
  for (const RewriteSite& site : chosen.sites) {
    if (++shown > most_sites_shown) break;
    chosen.attempt.remark(site.text, function_.instructions.contains(site.instruction)
                                         ? function_.instructions[site.instruction].range
                                         : function_.header_range);
  }
  if (shown > most_sites_shown)
    chosen.attempt.remark("and " + std::to_string(chosen.sites.size() - most_sites_shown) + " further sites",
                          function_.header_range);
}

std::optional<FamilyChoice::Try> FamilyChoice::without_alignment(const Try& chosen) {
  if (!chosen.attempt.needs_alignment() || original_of(function_)) return std::nullopt;
  DischargePolicy policy = policy_;
  policy.alignment = false;
  std::optional<Try> weaker = apply(SiteFilter(), policy);
  if (!weaker || !weaker->attempt.needs_original()) return std::nullopt;
  if (context_.options.flag("force")) return weaker;
  Result<KernelCost> cost = cost_of(weaker->attempt.function(), architectures_, context_);
  // The model does not count the gain of loads that need not wait for stores.
  const bool is_modelled = architectures_.empty();
  if (!cost || (is_modelled ? loses(*cost, before_) : !wins(*cost, before_, true, 0))) return std::nullopt;
  weaker->attempt.remark(comparison(*cost, before_), function_.header_range);
  return weaker;
}

Change FamilyChoice::keep(Try chosen) {
  std::optional<Try> weaker = without_alignment(chosen);
  const bool keeps_original = chosen.attempt.needs_original() && !original_of(function_);
  const size_t added = context_.additions.size();
  show_sites(chosen);
  std::move(chosen.attempt).commit(function_, context_);
  if (keeps_original)
    rewrite_kept_original(context_, added, [&](ir::Function& original, PassContext& context) {
      return run_family(original, context, family_);
    });
  if (weaker) {
    show_sites(*weaker);
    std::move(weaker->attempt).commit_beside(alignment_free, context_);
  }
  return Change::changed;
}

Change FamilyChoice::run() {
  std::optional<Try> all = apply(SiteFilter());
  if (!all) return Change::unchanged;
  if (context_.options.flag("force")) return keep(*std::move(all));
  if (!measure_original()) return Change::unchanged;
  const std::vector<RewriteSite> sites = all->sites;
  weigh(std::move(all));
  if (!best_) try_parts(sites);
  if (!best_) {
    context_.remarks.emplace_back("left as it is: " + lost_, function_.header_range);
    return Change::unchanged;
  }
  best_->attempt.remark(comparison(best_cost_, before_), function_.header_range);
  return keep(*std::move(best_));
}

} // namespace

bool SiteFilter::take(ir::InstructionId instruction, std::string text) {
  RewriteSite site{instruction, std::move(text)};
  if (allowed_ && !allowed_->contains(site)) return false;
  taken_.push_back(std::move(site));
  return true;
}

Change run_family(ir::Function& function, PassContext& context, const Family& family) {
  if (context.form != OutputForm::legal) return Change::unchanged;
  return FamilyChoice(function, context, family).run();
}

std::vector<PassOptionDescription> family_options() {
  return {
      {"force", "rewrite every site, whatever it costs", PassOptionKind::flag},
      cost_option(),
      architectures_option(),
      {"discharge", "how conditions may be met: proved, +launch (default proved+launch)"},
  };
}

PassDescription family_pass(std::string_view name, std::string_view doc, Change (*run)(ir::Function&, PassContext&)) {
  return {name, doc, run, family_options()};
}

} // namespace ptxrewrite::transforms::legal
