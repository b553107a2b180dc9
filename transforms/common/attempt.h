// One try at rewriting a kernel for today's GPUs: a copy of it, what the copy rests on, and what a launcher must
// compute for it. Candidates work on the copy; the choice among tries comes afterwards, and only the winner's notes are
// kept.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"
#include "transforms/common/kernel_guard.h"
#include "transforms/common/variant.h"
#include "transforms/manager/pass.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::legal {

constexpr std::string_view no_index_overflow = "no-index-overflow"; // --assume

// Which ways of discharging an obligation are open; proved ones always are.
struct DischargePolicy {
  bool assumed = false; // the user vouches for indices that do not overflow: nothing is left to check
  bool launch = false;  // by a predicate that the launcher evaluates: needs a variant
  bool kernel = false;  // by a test in the kernel itself, with the original body behind it; where no launcher chooses
};

class Attempt {
public:
  // `original` outlives this. `pass` is for what is written into the module.
  Attempt(const ir::Function& original, DischargePolicy policy, std::string_view pass = "r2d2");

  // The kernel that function() was copied from. Analyses of it are valid for function() until function() is edited.
  const ir::Function& original() const { return *original_; }
  ir::Function& function() { return function_; }
  const ir::Function& function() const { return function_; }
  const DischargePolicy& policy() const { return policy_; }

  // Can this be taken for granted, in one way or another?
  bool can_rest_on(const ir::LinearForms& forms, ir::ObligationId id) const;
  bool can_rest_on(const ir::LinearForms& forms, std::span<const ir::ObligationId> ids) const;
  // Enters it into the ledger; the first way that is open is taken. `raised_by` is for people, `where` stands in for an
  // obligation without a source line.
  void rest_on(ir::LinearForms& forms, ir::ObligationId id, std::string_view raised_by, ir::InstructionId where);

  // The same for what no analysis raised. `predicate` is an expression over the launch; empty: `reason` proves it.
  void rest_on(std::string statement, std::string_view raised_by, const std::string& predicate,
               const std::string& reason, SourceRange range);
  // What the user vouches for with `--assume word`.
  void rest_on_assumption(std::string statement, std::string_view raised_by, std::string_view word, SourceRange range);
  // The grid becomes one resident wave; only where a launcher chooses.
  void set_persistent() { terms_.persistent = true; }
  // Blocks are one row and get one warp more; only where a launcher chooses.
  void set_producer() { terms_.producer = true; }

  // The expression with added parameters written out, so that it is about the original's launch.
  std::string over_original_launch(std::string_view expression) const;

  // May kernel parameters be added? Only where a launcher chooses.
  bool may_add_parameters() const { return policy_.launch; }
  // A parameter with this value, an expression over the launch.
  ir::VariableId launch_parameter(ir::ScalarType type, const std::string& expression);
  size_t added_parameters() const { return terms_.parameters.size(); }

  void remark(std::string text, SourceRange range = {}) { remarks_.emplace_back(std::move(text), range); }
  std::map<std::string, int64_t> statistics;

  bool needs_original() const { return terms_.needs_original(); }
  // Of the test in front of the body, which the body does not have yet.
  size_t guard_instructions() const { return guard_.instruction_count(); }
  // The rewritten kernel takes the place of `function`, as a variant where it must; the notes go to the context.
  void commit(ir::Function& function, PassContext& context) &&;

private:
  const ir::Function* original_;
  ir::Function function_;
  DischargePolicy policy_;
  VariantTerms terms_;
  KernelGuard guard_;
  std::map<std::pair<ir::ScalarType, std::string>, ir::VariableId> parameters_;
  std::vector<LaunchParameter> added_; // behind the original's, in order: earlier passes', then this attempt's
  std::set<std::string> stated_;
  std::vector<Obligation> ledger_;
  std::vector<Remark> remarks_;
};

} // namespace ptxrewrite::transforms::legal
