// Tries the legal candidates, alone and combined, each on a copy of the kernel, and keeps the best one if it wins.
//
// Cost: if ptxas may be run, its results for the original and the rewritten kernel on each architecture; otherwise the
// static machine model, which must show a clear gain. `force` applies the listed candidates wherever they are legal.
#include "transforms/r2d2/legal_form.h"

#include "transforms/common/attempt.h"
#include "transforms/common/choice.h"
#include "transforms/common/gain_bound.h"
#include "transforms/common/kept_original.h"
#include "transforms/r2d2/common_base.h"
#include "transforms/r2d2/host_coefficients.h"
#include "transforms/r2d2/persistent.h"
#include "transforms/r2d2/uniform_base.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>

namespace ptxrewrite::transforms::legal {

namespace {

// Candidates by number, in the order in which they are applied.
enum : unsigned { common_base = 1, uniform_base = 2, host_coefficients = 3, inductions = 5 };
constexpr std::array order{common_base, uniform_base, inductions, host_coefficients};
constexpr std::string_view default_candidates = "1+2+3+5";
// gain_slack: the largest saving of a candidate, relative to the cost of its changes. most_synergy: the largest saving
// of a combination, relative to the sum of its candidates' single savings; above 1 because bases that are computed at
// launch make further coefficients movable to the launch. Fitted to half of the
// kernels of a public collection of benchmarks (docs/transforms/r2d2.md), where the largest ratios were 0.86 and 2.6.
constexpr double gain_slack = 1.1, most_synergy = 2.7;
// estimate_slack: the largest need of a winner relative to its balance, in which new instructions of address arithmetic
// count in full, or to its estimate. Fitted to the same half with 439 files, where none of 122 winners needs twice as
// much and 439 of 807 losers are not lowered; other half: 3 of 104 winners are lost, which save 2, 5 and 9 %, and 404
// of 771 losers are not lowered.
constexpr double estimate_slack = 2.5;
constexpr GainBalance address_balance{.new_share = 1, .slack = estimate_slack};

using Combination = std::vector<unsigned>;

bool contains(const Combination& list, unsigned candidate) {
  return std::ranges::find(list, candidate) != list.end();
}

std::string name_of(Combination combination) {
  std::ranges::sort(combination);
  std::string text;
  for (unsigned candidate : combination)
    text += (text.empty() ? "" : "+") + std::to_string(candidate);
  return text;
}

class LegalForm {
public:
  LegalForm(ir::Function& function, PassContext& context) : function_(function), context_(context) {}

  Change run();

private:
  Change refuse(const std::string& why) {
    context_.remarks.emplace_back("left as it is: " + why, function_.header_range);
    return Change::unchanged;
  }
  // Returns nothing if the option is not a list of candidates.
  std::optional<Combination> listed_candidates() const;
  DischargePolicy policy();
  // Returns nothing if one of the candidates changes nothing: a smaller combination then has the same result.
  std::optional<Attempt> attempt(const Combination& combination, bool force);
  // False if the candidate certainly changes nothing; found without a copy of the kernel.
  bool may_change(unsigned number, const ir::Function& kernel, AnalysisCache& analyses) const;
  std::optional<Proposal> propose(unsigned number, const Trial& trial, bool bases_at_launch, bool force) const;
  // An attempt with some candidates applied; `subset` has a bit for each of `available`.
  struct Step {
    Attempt* attempt = nullptr; // nullptr if no candidate is applied
    unsigned subset = 0;
    GainBound::Bounds most_saved;        // by the machine model, see gain_bound.h
    std::optional<bool> bases_at_launch; // set after a candidate that depends on it was applied: candidate 3 will
                                         // follow
  };
  // A candidate after a step. While its estimate suffices, the edits are not made.
  struct Applied {
    Proposal proposal;
    std::optional<Attempt> attempt;
    GainBound::Bounds most_saved; // by the edits, without the estimate
  };
  struct Choice;
  Change choose(const Combination& available);
  void extend(Choice& choice, const Step& step);
  void extend(Choice& choice, const Step& step, size_t next, std::span<const std::optional<bool>> bases_at_launch,
              AnalysisCache& analyses);
  bool is_hopeless(Choice& choice, size_t next, std::optional<bool> bases_at_launch) const;
  void make_edits(Choice& choice, const Step& step, size_t next, Applied& applied);
  void go_on(Choice& choice, const Step& step, size_t next, Applied& applied, std::optional<bool> bases_at_launch);
  bool may_win(Choice& choice, const Step& step);
  void weigh(Choice& choice, const Step& step);
  // Upper bounds of the saving by the machine model; infinite if ptxas decides.
  GainBound::Bounds most_saved_by(const Choice& choice, const Attempt& attempt);
  // Candidate 4, requested by name: not compared with ordinary blocks.
  std::optional<Change> make_persistent_form(const Combination& available);

  ir::Function& function_;
  PassContext& context_;
  DischargePolicy policy_;
};

std::optional<Combination> LegalForm::listed_candidates() const {
  Combination list;
  for (const std::string& word : split_words(context_.options.text("candidates", default_candidates))) {
    auto is_named = [&](unsigned candidate) { return word == std::to_string(candidate); };
    auto named = std::ranges::find_if(order, is_named);
    if (named == order.end()) return std::nullopt;
    if (!contains(list, *named)) list.push_back(*named);
  }
  std::ranges::sort(list, {}, [](unsigned candidate) { return std::ranges::find(order, candidate); });
  return list;
}

DischargePolicy LegalForm::policy() {
  std::vector<std::string> ways = split_words(context_.options.text("discharge", "proved+launch"));
  DischargePolicy policy;
  policy.assumed = context_.assumes(no_index_overflow);
  auto is_allowed = [&](std::string_view way) { return std::ranges::find(ways, way) != ways.end(); };
  policy.launch = is_allowed("launch") && why_no_launch_terms(function_, "r2d2", context_).empty();
  // For a kernel that the module itself launches, no launcher chooses variants.
  policy.kernel = function_.is_entry && !policy.launch && !original_of(function_) &&
                  (is_allowed("kernel") || (is_allowed("launch") && context_.is_referenced(function_)));
  return policy;
}

bool LegalForm::may_change(unsigned number, const ir::Function& kernel, AnalysisCache& analyses) const {
  switch (number) {
  case uniform_base:
  case inductions:
    return has_base_plans(kernel, analyses, policy_, number == inductions);
  case host_coefficients:
    return policy_.launch;
  default:
    return true;
  }
}

std::optional<Proposal> LegalForm::propose(unsigned number, const Trial& trial, bool bases_at_launch,
                                           bool force) const {
  switch (number) {
  case common_base:
    return propose_common_bases(trial);
  case uniform_base:
    return propose_offsets(trial, {.bases_at_launch = bases_at_launch, .force = force});
  case inductions:
    return propose_inductions(trial, {.bases_at_launch = bases_at_launch, .force = force});
  default:
    return propose_coefficients_at_launch(trial, force);
  }
}

std::optional<Attempt> LegalForm::attempt(const Combination& combination, bool force) {
  Attempt attempt(function_, policy_);
  const bool bases_at_launch = contains(combination, host_coefficients);
  bool any = false;
  for (unsigned number : combination) {
    const ir::Function kernel(attempt.function());
    AnalysisCache analyses;
    const std::optional<Proposal> proposal =
        propose(number, {kernel, analyses, policy_, attempt.added_parameters()}, bases_at_launch, force);
    if (!proposal && !force) return std::nullopt;
    if (!proposal) continue;
    proposal->carry_out(attempt);
    attempt.estimated_saving += proposal->saving;
    any = true;
  }
  return any ? std::optional(std::move(attempt)) : std::nullopt;
}

// The search over combinations, and the best one so far.
struct LegalForm::Choice {
  const Combination& available;
  std::vector<std::string> machines;
  KernelCost before;
  std::optional<Attempt> best;
  KernelCost best_cost;
  unsigned best_subset = 0;
  std::map<unsigned, std::string> lost; // why a subset was rejected
  // By index in `available`.
  struct Alone {
    // Upper bound of the saving. For candidates that may place bases in the kernel or at launch, the larger bound of
    // the two.
    double most_saved = 0;
    // The saving by the model, or its balance if it was too small to weigh; unset if it was not considered alone.
    std::optional<double> saved;
    // The edits of the last proposal. Until they are made the numbers above are unknown.
    std::optional<Applied> applied;
    std::optional<double> estimate; // of the saving, if it was too small to weigh

    static constexpr double any = std::numeric_limits<double>::infinity();
    bool is_deferred() const { return applied && !applied->attempt; }
    double bound() const { return is_deferred() ? any : most_saved; }
    double saved_at_most() const {
      return std::max(0.0, is_deferred() ? estimate.value_or(any) : saved.value_or(most_saved));
    }
  };
  std::vector<Alone> alone;

  // Returns false if no extension of the step by further candidates can save enough to win, according to two upper
  // bounds of its saving: the sum of the step's bound and the bounds of the further candidates; and `most_synergy`
  // times the sum of its candidates' single savings.
  bool may_win(unsigned subset, double most_saved, bool needs_original, std::optional<bool> bases_at_launch) const {
    double most = most_saved, sum = 0;
    for (size_t i = 0; i < available.size(); ++i) {
      const bool is_further = i >= size_t(std::bit_width(subset)) && may_follow(bases_at_launch, available[i]);
      if (is_further) most += alone[i].bound();
      if (is_further || (subset >> i & 1)) sum += alone[i].saved_at_most();
    }
    const double needed =
        std::max(saved_by_best(), needed_saving(before, needs_original, least_gain_of_other_expressions));
    return most >= needed && most_synergy * sum >= needed;
  }

  // Bases that the kernel computes are not also computed at launch.
  static bool may_follow(std::optional<bool> bases_at_launch, unsigned candidate) {
    return candidate != host_coefficients || bases_at_launch.value_or(true);
  }

  // By the model; 0 if nothing has won yet. A candidate with a smaller upper bound is not better.
  double saved_by_best() const { return best ? before.weighted - best_cost.weighted : 0; }

  std::string name_of_subset(unsigned subset) const {
    Combination combination;
    for (size_t i = 0; i < available.size(); ++i)
      if (subset >> i & 1) combination.push_back(available[i]);
    return name_of(std::move(combination));
  }
};

// Among equals the smaller number is kept, so that the result does not depend on the search order.
void LegalForm::weigh(Choice& choice, const Step& step) {
  const Attempt& attempt = *step.attempt;
  const unsigned subset = step.subset;
  const double most_saved = step.most_saved.least();
  const double least_gain = least_gain_by(choice.machines, least_gain_of_other_expressions);
  const double least = needed_saving(choice.before, attempt.needs_original(), least_gain);
  if (most_saved < least) {
    if (std::has_single_bit(subset))
      choice.alone[std::countr_zero(subset)].saved = step.most_saved.by_balance / estimate_slack;
    choice.lost[subset] = choice.name_of_subset(subset) + " " + too_small_gain(least, choice.before);
    return;
  }
  if (most_saved < choice.saved_by_best()) return;
  Result<KernelCost> cost = cost_of(attempt.function(), choice.machines, context_);
  if (!cost) {
    choice.lost[subset] = choice.name_of_subset(subset) + " is not assembled: " + cost.error().message;
    return;
  }
  if (std::has_single_bit(subset))
    choice.alone[std::countr_zero(subset)].saved = choice.before.weighted - cost->weighted;
  const size_t guard = attempt.guard_instructions();
  bool guard_pays = guard == 0 || cost->weighted + double(guard) <= choice.before.weighted;
  if (!guard_pays || !wins(*cost, choice.before, attempt.needs_original(), least_gain)) {
    choice.lost[subset] = choice.name_of_subset(subset) + " would make it " + comparison(*cost, choice.before);
    return;
  }
  if (choice.best && !is_better(*cost, choice.best_cost, choice.before) &&
      (subset > choice.best_subset || is_better(choice.best_cost, *cost, choice.before)))
    return;
  choice.best = attempt;
  choice.best->make_texts();
  choice.best_cost = *std::move(cost);
  choice.best_subset = subset;
}

// Makes the edits of a candidate on a copy of the step's kernel, and finds the bounds that they give.
void LegalForm::make_edits(Choice& choice, const Step& step, size_t next, Applied& applied) {
  if (applied.attempt) return;
  applied.attempt = step.attempt ? *step.attempt : Attempt(function_, policy_);
  applied.attempt->defer_texts();
  applied.proposal.carry_out(*applied.attempt);
  applied.most_saved = most_saved_by(choice, *applied.attempt);
  if (step.attempt) return;
  Choice::Alone& alone = choice.alone[next];
  alone.most_saved = std::max(alone.most_saved, applied.most_saved.by_changes);
  if (alone.estimate)
    alone.saved = std::min(applied.most_saved.by_balance, estimate_slack * *alone.estimate) / estimate_slack;
  alone.estimate.reset();
}

// Decides by the estimate alone that the proposal is too small to be weighed and that no extension of it wins. Most
// candidates lose, and making edits costs more than finding them.
bool LegalForm::is_hopeless(Choice& choice, size_t next, std::optional<bool> bases_at_launch) const {
  Choice::Alone& alone = choice.alone[next];
  const Proposal& proposal = alone.applied->proposal;
  if (!choice.machines.empty() || !proposal.needs_original) return false;
  const unsigned subset = 1u << next;
  const bool is_last = choice.available[next] == host_coefficients;
  if (is_last || !bases_at_launch.value_or(false)) { // is weighed
    const double least = needed_saving(choice.before, *proposal.needs_original, least_gain_of_other_expressions);
    if (estimate_slack * proposal.saving >= least) return false;
    alone.estimate = proposal.saving;
    choice.lost[subset] = choice.name_of_subset(subset) + " " + too_small_gain(least, choice.before);
  }
  return is_last || !choice.may_win(subset, Choice::Alone::any, *proposal.needs_original, bases_at_launch);
}

bool LegalForm::may_win(Choice& choice, const Step& step) {
  if (!choice.machines.empty()) return true;
  auto by_bounds = [&] {
    return choice.may_win(step.subset, step.most_saved.by_changes, step.attempt->needs_original(),
                          step.bases_at_launch);
  };
  if (!by_bounds()) return false;
  bool made = false;
  for (size_t i = 0; i < choice.alone.size(); ++i) {
    std::optional<Applied>& applied = choice.alone[i].applied;
    if (!choice.alone[i].is_deferred()) continue;
    make_edits(choice, {}, i, *applied);
    applied.reset();
    made = true;
  }
  return !made || by_bounds();
}

// Evaluates the result of edits and continues from it.
void LegalForm::go_on(Choice& choice, const Step& step, size_t next, Applied& applied,
                      std::optional<bool> bases_at_launch) {
  make_edits(choice, step, next, applied);
  Attempt& attempt = *applied.attempt;
  attempt.estimated_saving = (step.attempt ? step.attempt->estimated_saving : 0) + applied.proposal.saving;
  Step reached{&attempt, step.subset | 1u << next, applied.most_saved, bases_at_launch};
  double& by_balance = reached.most_saved.by_balance;
  if (by_balance != Choice::Alone::any) by_balance = std::min(by_balance, estimate_slack * attempt.estimated_saving);
  const bool is_last = choice.available[next] == host_coefficients;
  if (is_last || !bases_at_launch.value_or(false)) weigh(choice, reached);
  if (!is_last && may_win(choice, reached)) extend(choice, reached);
}

// Applies one more candidate after a step. A candidate that changes nothing ends this branch: the combination without
// it is tried anyway. Wherever the bases are computed, the edits are mostly the same; then they are made once.
void LegalForm::extend(Choice& choice, const Step& step, size_t next,
                       std::span<const std::optional<bool>> bases_at_launch, AnalysisCache& analyses) {
  const ir::Function& kernel = step.attempt ? step.attempt->function() : function_;
  const unsigned candidate = choice.available[next];
  if (!may_change(candidate, kernel, analyses)) return;
  const Trial trial{kernel, analyses, policy_, step.attempt ? step.attempt->added_parameters() : 0};
  std::optional<Applied> own;
  std::optional<Applied>& applied = step.attempt ? own : choice.alone[next].applied;
  for (const std::optional<bool>& place : bases_at_launch) {
    std::optional<Proposal> proposal = propose(candidate, trial, place.value_or(false), false);
    if (!proposal) continue;
    if (applied && applied->proposal.edits != proposal->edits) {
      make_edits(choice, step, next, *applied);
      applied.reset();
    }
    if (!applied) applied.emplace();
    applied->proposal = *std::move(proposal);
    if (!step.attempt && !applied->attempt && is_hopeless(choice, next, place)) continue;
    go_on(choice, step, next, *applied, place);
  }
  if (applied && applied->attempt) applied.reset();
}

// By the edits; infinite if ptxas decides.
GainBound::Bounds LegalForm::most_saved_by(const Choice& choice, const Attempt& attempt) {
  constexpr double any = Choice::Alone::any;
  if (!choice.machines.empty()) return {any, any};
  return context_.analyses.of<GainBound>(function_).bounds(attempt.function(), gain_slack, address_balance);
}

// Combinations with a common prefix share the prefix, and candidates that start from the same kernel share its
// analyses. By the model, later candidates are tried first, so that their savings alone are known where they may follow
// a step; the runs of ptxas go to the earlier ones first.
void LegalForm::extend(Choice& choice, const Step& step) {
  AnalysisCache own = AnalysisCache::beside(context_.analyses);
  AnalysisCache& analyses = step.attempt ? own : context_.analyses;
  const bool can_move_bases = contains(choice.available, host_coefficients);
  const size_t first = std::bit_width(step.subset), end = choice.available.size();
  for (size_t i = first; i < end; ++i) {
    const size_t next = choice.machines.empty() ? first + end - 1 - i : i;
    const unsigned candidate = choice.available[next];
    std::vector<std::optional<bool>> bases_at_launch;
    if (candidate == common_base) {
      bases_at_launch = {std::nullopt};
    } else if (candidate == host_coefficients) {
      if (Choice::may_follow(step.bases_at_launch, candidate)) bases_at_launch = {step.bases_at_launch};
    } else {
      if (!step.bases_at_launch.value_or(false)) bases_at_launch.emplace_back(false);
      if (can_move_bases && step.bases_at_launch.value_or(true)) bases_at_launch.emplace_back(true);
    }
    if (!bases_at_launch.empty()) extend(choice, step, next, bases_at_launch, analyses);
  }
}

Change LegalForm::choose(const Combination& available) {
  std::vector<std::string> machines = architectures_to_ask(function_.module(), context_);
  std::optional<KernelCost> before = cost_of_original(function_, machines, context_);
  if (!before) return Change::unchanged;
  Choice choice{
      available, std::move(machines), *std::move(before), {}, {}, 0, {}, std::vector<Choice::Alone>(available.size())};
  extend(choice, {});
  if (!choice.best) {
    std::string lost;
    for (const auto& [subset, why] : choice.lost)
      lost += (lost.empty() ? "" : "; ") + why;
    return lost.empty() ? Change::unchanged : refuse("no candidate wins: " + lost);
  }
  choice.best->remark("candidate " + choice.name_of_subset(choice.best_subset) + " wins; " +
                          comparison(choice.best_cost, choice.before),
                      function_.header_range);
  std::move(*choice.best).commit(function_, context_);
  return Change::changed;
}

// Returns nothing if it is not possible, and adds a remark. The other candidates are evaluated inside the loop over
// blocks: hoisted code costs a tenth there.
std::optional<Change> LegalForm::make_persistent_form(const Combination& available) {
  PersistentCheck check = check_persistent(function_, context_);
  if (check.refusal.empty() && !policy_.launch) check.refusal = "a launcher has to compute the grid (discharge=launch)";
  if (!check.refusal.empty()) {
    context_.remarks.emplace_back("not made persistent: " + check.refusal, check.range);
    return std::nullopt;
  }
  const bool force = context_.options.flag("force");
  std::optional<Attempt> best;
  double best_cost = 0;
  const unsigned all = (1u << available.size()) - 1;
  for (unsigned subset = force ? all : 0; subset <= all; ++subset) {
    Combination combination;
    for (size_t i = 0; i < available.size(); ++i)
      if (subset >> i & 1) combination.push_back(available[i]);
    std::optional<Attempt> next = attempt(combination, force);
    if (!next && (force || combination.empty())) next.emplace(function_, policy_);
    if (!next) continue;
    make_persistent(*next, check.needs);
    const double cost = model_cost_of(next->function()).weighted;
    if (best && cost >= best_cost) continue;
    if (!combination.empty()) next->remark("with candidate " + name_of(combination), function_.header_range);
    best = std::move(next);
    best_cost = cost;
  }
  std::move(*best).commit(function_, context_);
  return Change::changed;
}

Change LegalForm::run() {
  std::optional<Combination> listed = listed_candidates();
  if (!listed) return refuse("candidates= takes numbers such as 1+3; there are 1, 2, 3 and 5");
  // The other candidates need launch-uniform parameters.
  if (!function_.is_entry) std::erase_if(*listed, [](unsigned candidate) { return candidate != common_base; });
  policy_ = policy();
  if (context_.options.flag("persistent"))
    if (std::optional<Change> change = make_persistent_form(*listed)) return *change;
  if (!context_.options.flag("force")) return choose(*listed);
  std::optional<Attempt> forced = attempt(*listed, true);
  if (!forced) return Change::unchanged;
  std::move(*forced).commit(function_, context_);
  return Change::changed;
}

} // namespace

std::vector<PassOptionDescription> legal_options() {
  return {
      {"candidates", "which legal candidates to try, alone and together: numbers with + (default 1+2+3+5)"},
      {"force", "take the listed candidates wherever they apply, whatever they cost", PassOptionKind::flag},
      cost_option(),
      architectures_option(),
      {"discharge", "how conditions may be met: proved, +launch, +kernel (default proved+launch, and kernel where the "
                    "module launches the kernel itself)"},
      {"persistent", "blocks loop over the grid in one resident wave (candidate 4)", PassOptionKind::flag},
  };
}

Change make_legal_form(ir::Function& function, PassContext& context) {
  const size_t added = context.additions.size();
  const Change change = LegalForm(function, context).run();
  if (change == Change::changed && !context.options.flag("persistent"))
    rewrite_kept_original(context, added,
                          [](ir::Function& original, PassContext& own) { return LegalForm(original, own).run(); });
  return change;
}

} // namespace ptxrewrite::transforms::legal
