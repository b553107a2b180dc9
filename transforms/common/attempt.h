// One attempt to rewrite a kernel for existing GPUs: a copy of the kernel, the obligations that the copy depends on,
// and the values that a launcher must compute for it. Candidates modify the copy; the caller compares attempts
// afterwards, and only the obligations and remarks of the best one are kept.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"
#include "transforms/common/kernel_guard.h"
#include "transforms/common/variant.h"
#include "transforms/manager/pass.h"

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::legal {

constexpr std::string_view no_index_overflow = "no-index-overflow"; // --assume

// The ways of discharging an obligation that are available; proved obligations are always accepted.
struct DischargePolicy {
  bool assumed = false;  // the user asserts that indices do not overflow: no check is needed
  bool launch = false;   // by a predicate that the launcher evaluates: needs a variant
  bool alignment = true; // with `launch`: also predicates on the alignment of addresses, which fail for some sizes
  bool kernel = false;   // by a test in the kernel itself, followed by the original body; if no launcher chooses

  bool operator==(const DischargePolicy&) const = default;
};

// Can the obligation be discharged in one of the ways that are available?
bool can_discharge(const DischargePolicy& policy, const ir::LinearForms& forms, ir::ObligationId id);
bool can_discharge(const DischargePolicy& policy, const ir::LinearForms& forms, std::span<const ir::ObligationId> ids);
// Is it the launcher that discharges the obligation, so that the original has to stay? Only if it can be discharged.
bool is_checked_at_launch(const DischargePolicy& policy, const ir::LinearForms& forms, ir::ObligationId id);
bool is_checked_at_launch(const DischargePolicy& policy, const ir::LinearForms& forms,
                          std::span<const ir::ObligationId> ids);

class Attempt {
public:
  // `original` must outlive this object. `pass` is the pass's name in annotations.
  Attempt(const ir::Function& original, DischargePolicy policy, std::string_view pass = "r2d2");

  // The kernel that function() was copied from. Analyses of it are valid for function() until function() is edited.
  const ir::Function& original() const { return *original_; }
  ir::Function& function() { return function_; }
  const ir::Function& function() const { return function_; }
  const DischargePolicy& policy() const { return policy_; }

  bool can_rest_on(const ir::LinearForms& forms, ir::ObligationId id) const {
    return can_discharge(policy_, forms, id);
  }
  bool can_rest_on(const ir::LinearForms& forms, std::span<const ir::ObligationId> ids) const {
    return can_discharge(policy_, forms, ids);
  }
  // Enters the obligation into the ledger, discharged in the first available way. `raised_by` is text for the user;
  // `where` supplies the source line if the obligation has none.
  void rest_on(ir::LinearForms& forms, ir::ObligationId id, std::string_view raised_by, ir::InstructionId where);
  // From now on rest_on() notes obligations only, if no guard has to test them, and remark_later() functions: their
  // texts cost more than the edits, and most attempts lose. make_texts() makes them, as long as the forms exist.
  void defer_texts() { defers_texts_ = true; }
  void make_texts();

  // The same for a condition that no analysis raised. `predicate` is an expression over the launch; if empty, `reason`
  // is the proof.
  void rest_on(std::string statement, std::string_view raised_by, const std::string& predicate,
               const std::string& reason, SourceRange range);
  // A condition that the user asserts with `--assume word`.
  void rest_on_assumption(std::string statement, std::string_view raised_by, std::string_view word, SourceRange range);
  // Limits the grid to one resident wave; requires a launcher that chooses variants.
  void set_persistent() { terms_.persistent = true; }
  // Arranges blocks as one row with one additional warp; requires a launcher that chooses variants.
  void set_producer() { terms_.producer = true; }

  // States that launch predicates of this attempt require an alignment of addresses.
  void set_needs_alignment() { needs_alignment_ = true; }
  bool needs_alignment() const { return needs_alignment_; }

  // Replaces added parameters in the expression by their definitions, so that it refers to the original's launch.
  std::string over_original_launch(std::string_view expression) const;

  // May kernel parameters be added? Only if a launcher chooses variants.
  bool may_add_parameters() const { return policy_.launch; }
  // Returns a parameter with this value, which is an expression over the launch.
  ir::VariableId launch_parameter(ir::ScalarType type, const std::string& expression);
  size_t added_parameters() const { return terms_.parameters.size(); }

  void remark(std::string text, SourceRange range = {}) { remarks_.emplace_back(std::move(text), range); }
  // The same for a text that is costly to make. The function gets function().
  using RemarkText = std::function<std::string(const ir::Function&)>;
  void remark_later(const RemarkText& text, SourceRange range);
  std::map<std::string, int64_t> statistics;
  // By the candidates that were applied: cost of the instructions that become superfluous less that of new ones.
  double estimated_saving = 0;

  bool needs_original() const { return notes_launch_check_ || terms_.needs_original(); }
  // Number of instructions in the test that commit() will insert before the body.
  size_t guard_instructions() const { return guard_.instruction_count(); }
  // Replaces `function` by the rewritten kernel, as a variant if necessary; ledger entries, remarks and statistics go
  // to the context.
  void commit(ir::Function& function, PassContext& context) &&;
  // Adds the rewritten kernel as a further variant, `<kernel>__<pass>_<suffix>`, beside another attempt that was
  // committed.
  void commit_beside(std::string_view suffix, PassContext& context) &&;

private:
  struct NotedObligation {
    ir::LinearForms* forms;
    ir::ObligationId id;
    std::string_view raised_by;
    SourceRange range;
  };
  void state(const NotedObligation& noted);
  void state_obligations();
  void report_to(PassContext& context);

  const ir::Function* original_;
  ir::Function function_;
  DischargePolicy policy_;
  VariantTerms terms_;
  KernelGuard guard_;
  std::map<std::pair<ir::ScalarType, std::string>, ir::VariableId> parameters_;
  std::vector<LaunchParameter> added_; // added after the original's parameters, in order: by earlier passes, then by
                                       // this attempt
  std::set<std::string> stated_;
  bool defers_texts_ = false;
  std::vector<NotedObligation> noted_; // by rest_on(), not stated yet
  bool notes_launch_check_ = false;    // one of these is checked at launch
  bool needs_alignment_ = false;
  std::vector<Obligation> ledger_;
  std::vector<Remark> remarks_;
  std::vector<std::pair<size_t, RemarkText>> missing_texts_; // of remarks_, by index
};

} // namespace ptxrewrite::transforms::legal
