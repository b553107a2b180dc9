// Tries the families of rules, alone and combined, each on a copy of the kernel, and keeps the best copy if it wins.
//
// A rule is applied if it saves machine instructions by its own estimate (`saves`, minus instructions that stay because
// they have other readers). Whether the kernel improves is a separate question, because ptxas does many of these
// rewritings itself: if it may be run, each copy is assembled; otherwise the machine model decides. `force` applies
// every rule wherever it matches.
#include "transforms/composite/composite_form.h"

#include "ir/edit/dead_code.h"
#include "transforms/common/choice.h"
#include "transforms/common/gain_bound.h"
#include "transforms/composite/composite_bytes.h"
#include "transforms/composite/composite_dot.h"
#include "transforms/composite/composite_elements.h"
#include "transforms/composite/composite_logic.h"
#include "transforms/composite/composite_match.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <map>
#include <ranges>
#include <unordered_map>

namespace ptxrewrite::transforms {

namespace legal::composite {

namespace {

using ir::BlockId;
using ir::InstructionId;
using Families = std::bitset<family_names.size()>;

enum class Eagerness : uint8_t {
  saving,  // rules that save instructions at the site
  neutral, // also rules that ptxas applies itself: one may enable others
  forced,  // wherever they match
};

// A selection of rules, and how often each was applied.
struct Candidate {
  Families families;
  Eagerness eagerness = Eagerness::saving;
  std::map<std::string, int64_t> taken;
  Families fired;
  std::optional<ir::Function> function;

  void count(Family family, const std::string& rule, int64_t times = 1) {
    taken[rule] += times;
    fired.set(static_cast<size_t>(family));
  }
};

class Rewriter {
public:
  Rewriter(ir::Function& function, Candidate& candidate) : editor_(function), candidate_(candidate) {
    for (const RuleRow& row : rule_rows())
      if ((row.family == Family::dot || row.family == Family::bytes) && is_allowed(row))
        (row.family == Family::dot ? dots_ : elements_).push_back(&row);
    const bool has_prmt = is_available(function.module(), 20, 20);
    permutes_ = has_prmt && allows(Family::permute);
    covers_ = allows(Family::logic) && is_available(function.module(), 43, 50);
  }

  void run() {
    // Each round works on the result of the previous one; few kernels need a third.
    constexpr unsigned most_rounds = 6;
    for (unsigned round = 0; round < most_rounds; ++round) {
      bool changed = false;
      for (BlockId block : editor_.function().layout)
        changed |= rewrite(block);
      if (!changed) break;
    }
    if (!covers_) return;
    for (BlockId block : editor_.function().layout)
      if (const size_t made = cover_logic(editor_, block, is_forced())) candidate_.count(Family::logic, "lop3", made);
  }

private:
  // The rules with such a root, in the order of the table.
  const std::vector<const Rule*>& rules_with_root(std::string_view mnemonic) {
    const auto [place, is_new] = by_mnemonic_.try_emplace(mnemonic);
    if (!is_new) return place->second;
    for (const RuleRow* row : rows_with_root(mnemonic)) {
      if (row->family == Family::dot || row->family == Family::bytes || !is_allowed(*row)) continue;
      for (const Rule& rule : rules_of(*row))
        if (rule.pattern.text == mnemonic) place->second.push_back(&rule);
    }
    return place->second;
  }
  bool allows(Family family) const { return candidate_.families.test(static_cast<size_t>(family)); }
  bool is_allowed(const RuleRow& row) const {
    return allows(row.family) && is_available(editor_.function().module(), row.version, row.target);
  }
  bool is_forced() const { return candidate_.eagerness == Eagerness::forced; }
  bool rewrite(BlockId block);
  bool apply_best_rule(InstructionId root);

  Editor editor_;
  Candidate& candidate_;
  std::vector<const RuleRow*> dots_, elements_;
  std::unordered_map<std::string_view, std::vector<const Rule*>> by_mnemonic_; // of the pattern's root, if asked for
  bool permutes_ = false, covers_ = false;
};

// Visits users before their operands, so that the largest tree is matched at its root.
bool Rewriter::rewrite(BlockId block) {
  std::vector<InstructionId> list;
  for (InstructionId id : editor_.function().instructions_in(block))
    list.push_back(id);
  bool changed = false;
  for (InstructionId id : std::views::reverse(list)) {
    if (!editor_.is_computation(id)) continue;
    if (const Rule* row = compute_together(editor_, id, elements_, is_forced())) {
      candidate_.count(Family::bytes, row->name);
      changed = true;
      continue;
    }
    if (permutes_ && permute_bytes(editor_, id, is_forced())) {
      candidate_.count(Family::permute, "permute");
      changed = true;
      continue;
    }
    if (const Rule* dot = combine_products(editor_, id, dots_)) {
      candidate_.count(Family::dot, dot->name);
      changed = true;
      continue;
    }
    changed |= apply_best_rule(id);
  }
  return changed;
}

bool Rewriter::apply_best_rule(InstructionId root) {
  const Rule* best = nullptr;
  Match best_match;
  int best_benefit = candidate_.eagerness == Eagerness::saving ? 0 : -1;
  if (is_forced()) best_benefit = INT32_MIN;
  for (const Rule* rule : rules_with_root(canonical(editor_.mnemonic(root)))) {
    if (rule->replacement.text == "lop3.b32" && editor_.is_only_tested(editor_.result(root))) continue;
    std::optional<Match> found = match(editor_, rule->pattern, rule->conditions, root);
    if (!found) continue;
    const int saved = benefit(editor_, *rule, *found);
    if (saved <= best_benefit) continue;
    best_benefit = saved;
    best = rule;
    best_match = *std::move(found);
  }
  if (!best) return false;
  replace(editor_, *best, best_match);
  candidate_.count(best->family, best->name);
  return true;
}

std::string listed(const std::map<std::string, int64_t>& taken) {
  std::string text;
  for (const auto& [name, times] : taken)
    text += (text.empty() ? "" : ", ") + name + (times == 1 ? "" : " (" + std::to_string(times) + ")");
  return text;
}

class LegalComposite {
public:
  LegalComposite(ir::Function& function, PassContext& context) : function_(function), context_(context) {}

  Change run();

private:
  // Returns nothing if the option is not a list of families.
  std::optional<Families> listed_families() const;
  Candidate attempt(Families families, Eagerness eagerness) const;
  Change choose(Families families);
  bool may_win(const Candidate& candidate);
  // Keeps the candidate if it is the best so far.
  void weigh(Candidate candidate);
  Change commit(Candidate candidate, const std::string& why);

  ir::Function& function_;
  PassContext& context_;
  std::vector<std::string> architectures_;
  KernelCost before_;
  std::optional<Candidate> best_;
  KernelCost best_cost_;
  std::string lost_;
};

std::optional<Families> LegalComposite::listed_families() const {
  const std::string_view text = context_.options.text("families", "");
  if (text.empty()) return Families().set();
  Families families;
  for (const std::string& word : split_words(text)) {
    const auto name = std::ranges::find(family_names, word);
    if (name == family_names.end()) return std::nullopt;
    families.set(static_cast<size_t>(name - family_names.begin()));
  }
  return families;
}

Candidate LegalComposite::attempt(Families families, Eagerness eagerness) const {
  Candidate candidate;
  candidate.families = families;
  candidate.eagerness = eagerness;
  candidate.function.emplace(function_);
  // Byte vectors in one register pay only if the kernel computes with them, or assembles them, in that register.
  const bool joins = families.test(static_cast<size_t>(Family::bytes)) && join_byte_vectors(*candidate.function) > 0;
  Rewriter(*candidate.function, candidate).run();
  if (joins && !candidate.fired.test(static_cast<size_t>(Family::bytes)) &&
      !candidate.fired.test(static_cast<size_t>(Family::dot)) &&
      !candidate.fired.test(static_cast<size_t>(Family::permute)))
    return attempt(Families(families).reset(static_cast<size_t>(Family::bytes)), eagerness);
  if (candidate.fired.any()) ir::remove_dead_code(*candidate.function);
  return candidate;
}

// Returns false if the candidate cannot save enough by the machine model. Always true if ptxas decides.
bool LegalComposite::may_win(const Candidate& candidate) {
  if (!architectures_.empty()) return true;
  const double least = needed_saving(before_, false, least_gain_of_other_expressions);
  if (context_.analyses.of<GainBound>(function_).bounds(*candidate.function).least() >= least) return true;
  lost_ += (lost_.empty() ? "" : "; ") + listed(candidate.taken) + " " + too_small_gain(least, before_);
  return false;
}

void LegalComposite::weigh(Candidate candidate) {
  if (!may_win(candidate)) return;
  const Result<KernelCost> cost = cost_of(*candidate.function, architectures_, context_);
  if (!cost) {
    lost_ += (lost_.empty() ? "" : "; ") + listed(candidate.taken) + " is not assembled: " + cost.error().message;
    return;
  }
  if (!wins(*cost, before_, false, least_gain_by(architectures_, least_gain_of_other_expressions))) {
    lost_ += (lost_.empty() ? "" : "; ") + listed(candidate.taken) + " would make it " + comparison(*cost, before_);
    return;
  }
  if (best_ && !is_better(*cost, best_cost_, before_)) return;
  best_ = std::move(candidate);
  best_cost_ = *cost;
}

Change LegalComposite::commit(Candidate candidate, const std::string& why) {
  for (const auto& [name, times] : candidate.taken)
    context_.statistics["composite." + name] += times;
  context_.remarks.emplace_back(listed(candidate.taken) + why, function_.header_range);
  function_ = *std::move(candidate.function);
  function_.changed();
  return Change::changed;
}

Change LegalComposite::choose(Families families) {
  architectures_ = architectures_to_ask(function_.module(), context_);
  Candidate all = attempt(families, Eagerness::saving);
  const Families fired = all.fired;
  // Rules that save no instruction can only improve the count of ptxas, so they are tried only if ptxas is used.
  std::optional<Candidate> neutral;
  if (!architectures_.empty()) neutral = attempt(families, Eagerness::neutral);
  if (!fired.any() && !(neutral && neutral->fired.any())) return Change::unchanged;
  std::optional<KernelCost> before = cost_of_original(function_, architectures_, context_);
  if (!before) return Change::unchanged;
  before_ = *std::move(before);
  if (neutral && neutral->taken != all.taken) weigh(*std::move(neutral));
  if (fired.any()) weigh(std::move(all));
  // Tries each family alone, then adds one family after the other to the best result so far.
  for (size_t family = 0; fired.count() > 1 && family < fired.size(); ++family)
    if (fired.test(family)) weigh(attempt(Families().set(family), Eagerness::saving));
  for (size_t family = 0; best_ && family < fired.size(); ++family)
    if (fired.test(family) && !best_->families.test(family))
      weigh(attempt(Families(best_->families).set(family), best_->eagerness));
  if (best_) return commit(*std::move(best_), "; " + comparison(best_cost_, before_));
  if (!lost_.empty()) context_.remarks.emplace_back("left as it is: " + lost_, function_.header_range);
  return Change::unchanged;
}

Change LegalComposite::run() {
  const std::optional<Families> families = listed_families();
  if (!families) {
    context_.remarks.emplace_back("left as it is: families= takes names such as rotate+logic", function_.header_range);
    return Change::unchanged;
  }
  if (!context_.options.flag("force")) return choose(*families);
  Candidate forced = attempt(*families, Eagerness::forced);
  return forced.fired.any() ? commit(std::move(forced), "; forced") : Change::unchanged;
}

} // namespace

} // namespace legal::composite

std::vector<PassOptionDescription> legal_composite_options() {
  return {
      {"families",
       "which rules to try, alone and together: rotate+field+mask+sad+select+sum+dot+bytes+permute+logic (default: "
       "all)"},
      {"force", "take every rule wherever it matches, whatever it costs", PassOptionKind::flag},
      legal::cost_option(),
      legal::architectures_option(),
  };
}

Change run_legal_composite(ir::Function& function, PassContext& context) {
  return legal::composite::LegalComposite(function, context).run();
}

} // namespace ptxrewrite::transforms
