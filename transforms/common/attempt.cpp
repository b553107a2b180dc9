// Bookkeeping of one attempt: obligations, launch predicates, added parameters.
#include "transforms/common/attempt.h"

#include "ir/analysis/linear/exact_range.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>

namespace ptxrewrite::transforms::legal {

bool can_discharge(const DischargePolicy& policy, const ir::LinearForms& forms, ir::ObligationId id) {
  if (forms.obligation(id).proved || (policy.assumed && forms.is_about_overflow(id))) return true;
  if (policy.launch) return forms.has_launch_predicate(id);
  return policy.kernel && KernelGuard::can_test(forms, id);
}

bool can_discharge(const DischargePolicy& policy, const ir::LinearForms& forms, std::span<const ir::ObligationId> ids) {
  return std::ranges::all_of(ids, [&](ir::ObligationId id) { return can_discharge(policy, forms, id); });
}

bool is_checked_at_launch(const DischargePolicy& policy, const ir::LinearForms& forms, ir::ObligationId id) {
  return policy.launch && !forms.obligation(id).proved && !(policy.assumed && forms.is_about_overflow(id));
}

bool is_checked_at_launch(const DischargePolicy& policy, const ir::LinearForms& forms,
                          std::span<const ir::ObligationId> ids) {
  return std::ranges::any_of(ids, [&](ir::ObligationId id) { return is_checked_at_launch(policy, forms, id); });
}

Attempt::Attempt(const ir::Function& original, DischargePolicy policy, std::string_view pass)
    : original_(&original), function_(original), policy_(policy), guard_(original) {
  terms_.pass = pass;
  added_ = added_parameters_of(original);
  std::vector<ir::VariableId> list;
  for (ir::VariableId id : function_.variable_lists.view(function_.signature.parameters))
    list.push_back(id);
  // Annotations in input that this program did not write may be inconsistent.
  if (added_.size() > list.size()) added_.clear();
  for (size_t i = 0; i < added_.size(); ++i)
    parameters_.try_emplace({added_[i].type, added_[i].value}, list[list.size() - added_.size() + i]);
}

std::string Attempt::over_original_launch(std::string_view expression) const {
  if (added_.empty()) return std::string(expression);
  const size_t first_added = function_.variable_lists.view(function_.signature.parameters).size() - added_.size();
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  std::string text;
  for (size_t at = 0; at < expression.size();) {
    size_t end = at;
    while (end < expression.size() && is_word(expression[end]))
      ++end;
    const std::string_view word = expression.substr(at, end - at);
    size_t number = 0;
    const bool is_parameter = word.starts_with('P') &&
                              std::from_chars(word.data() + 1, word.data() + word.size(), number).ptr == word.end() &&
                              word.size() > 1 && number >= first_added && number < first_added + added_.size();
    if (is_parameter) {
      // A parameter holds the low bits of its value, interpreted as unsigned.
      const LaunchParameter& parameter = added_[number - first_added];
      text += "zext" + std::to_string(ir::bit_width(parameter.type)) + "(" + parameter.value + ")";
    } else {
      text += word;
    }
    if (end == at) text += expression[end++];
    at = end;
  }
  return text;
}

void Attempt::rest_on(ir::LinearForms& forms, ir::ObligationId id, std::string_view raised_by,
                      ir::InstructionId where) {
  const ir::RangeObligation& obligation = forms.obligation(id);
  const SourceRange range = obligation.source.empty() ? function_.instructions[where].range : obligation.source;
  noted_.push_back({&forms, id, raised_by, range});
  const bool is_checked = is_checked_at_launch(policy_, forms, id);
  const bool needs_guard = !is_checked && !obligation.proved && !(policy_.assumed && forms.is_about_overflow(id));
  if (!defers_texts_ || needs_guard) return state_obligations();
  notes_launch_check_ |= is_checked;
}

void Attempt::state_obligations() {
  for (const NotedObligation& noted : noted_)
    state(noted);
  noted_.clear();
  notes_launch_check_ = false;
}

void Attempt::remark_later(const RemarkText& text, SourceRange range) {
  remarks_.emplace_back(defers_texts_ ? std::string() : text(function_), range);
  if (defers_texts_) missing_texts_.emplace_back(remarks_.size() - 1, text);
}

void Attempt::make_texts() {
  state_obligations();
  for (const auto& [index, text] : missing_texts_)
    remarks_[index].text = text(function_);
  missing_texts_.clear();
}

void Attempt::state(const NotedObligation& noted) {
  auto& [forms_of_it, id, raised_by, range] = noted;
  ir::LinearForms& forms = *forms_of_it;
  const ir::RangeObligation& obligation = forms.obligation(id);
  // Statements do not show extensions, and the same statement may be proved at one place but not at another.
  const std::string predicate = obligation.proved ? std::string() : over_original_launch(forms.launch_predicate(id));
  const std::string statement = forms.statement(id);
  if (!stated_.insert(statement + '\n' + (obligation.proved ? std::string(obligation.reason) : predicate)).second)
    return;
  Obligation entry{std::string(function_.module().text(function_.name)),
                   statement,
                   std::string(raised_by),
                   Discharge::proved,
                   std::string(obligation.reason),
                   range,
                   ir::print_exact_range(forms, id)};
  if (!obligation.proved && policy_.assumed && forms.is_about_overflow(id)) {
    entry.discharge = Discharge::assumed;
    entry.reason = no_index_overflow;
  } else if (!obligation.proved && !policy_.launch) {
    entry.discharge = Discharge::in_kernel;
    entry.reason = "the kernel's first block, which else branches to the original body";
    guard_.test(forms, id);
  } else if (!obligation.proved) {
    entry.discharge = Discharge::launch_checked;
    entry.reason = predicate;
    if (std::ranges::find(terms_.requirements, entry.reason) == terms_.requirements.end())
      terms_.requirements.push_back(entry.reason);
  }
  ledger_.push_back(std::move(entry));
}

void Attempt::rest_on(std::string statement, std::string_view raised_by, const std::string& predicate,
                      const std::string& reason, SourceRange range) {
  state_obligations();
  const std::string condition = over_original_launch(predicate);
  Obligation entry{std::string(function_.module().text(function_.name)),
                   std::move(statement),
                   std::string(raised_by),
                   condition.empty() ? Discharge::proved : Discharge::launch_checked,
                   condition.empty() ? reason : condition,
                   range,
                   {}};
  if (!condition.empty() && std::ranges::find(terms_.requirements, condition) == terms_.requirements.end())
    terms_.requirements.push_back(condition);
  ledger_.push_back(std::move(entry));
}

void Attempt::rest_on_assumption(std::string statement, std::string_view raised_by, std::string_view word,
                                 SourceRange range) {
  state_obligations();
  ledger_.push_back({std::string(function_.module().text(function_.name)),
                     std::move(statement),
                     std::string(raised_by),
                     Discharge::assumed,
                     std::string(word),
                     range,
                     {}});
}

ir::VariableId Attempt::launch_parameter(ir::ScalarType type, const std::string& expression) {
  const std::string value = over_original_launch(expression);
  auto [row, is_new] = parameters_.try_emplace({type, value});
  if (is_new) {
    row->second = add_parameter(function_, type);
    terms_.parameters.push_back({type, value});
    added_.push_back({type, value});
  }
  return row->second;
}

void Attempt::report_to(PassContext& context) {
  assert(noted_.empty() && missing_texts_.empty());
  for (const auto& [name, count] : statistics)
    context.statistics[name] += count;
  context.ledger.insert(context.ledger.end(), ledger_.begin(), ledger_.end());
  context.remarks.insert(context.remarks.end(), remarks_.begin(), remarks_.end());
}

void Attempt::commit(ir::Function& function, PassContext& context) && {
  std::unique_ptr<ir::Function> original;
  const bool is_variant = original_of(function).has_value();
  if (needs_original() && !is_variant) original = std::make_unique<ir::Function>(function);
  if (!guard_.empty()) {
    remark("a test of " + std::to_string(guard_.instruction_count()) +
               " instructions chooses between the rewritten body and the original one",
           function.header_range);
    guard_.attach(function_);
  }
  function = std::move(function_);
  function.changed();
  report_to(context);
  if (needs_original() && is_variant) extend_variant(function, terms_, context);
  if (original) make_variant(function, std::move(original), terms_, context);
}

void Attempt::commit_beside(std::string_view suffix, PassContext& context) && {
  add_further_variant(std::make_unique<ir::Function>(std::move(function_)), suffix, terms_, context);
  ir::Function& variant = *context.additions.back();
  variant.changed();
  // Its conditions are a different list than those of the variant that is tried before it.
  for (Obligation& entry : ledger_)
    entry.function = variant.module().text(variant.name);
  report_to(context);
}

} // namespace ptxrewrite::transforms::legal
