// Common base + immediate: an access `[b + 4]` whose address is provably `[a] + 8` for an available register `a`
// becomes `[a + 8]`, if this makes the computation of `b` superfluous.
//
// ptxas folds chains of constant additions by itself, but does not recognize that two differently computed addresses
// have the same linear form: sums in another order, products distributed over sums, extensions that provably do not
// wrap. Equality is decided on exact forms in Z/2^n, under the obligations of both.
#include "transforms/r2d2/common_base.h"

#include "ir/analysis/linear/linear.h"
#include "ir/edit/dead_code.h"
#include "ir/flow/liveness.h"
#include "transforms/common/cost.h"
#include "transforms/r2d2/r2d2_plan.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::LinearForm;
using ir::ObligationId;
using ir::Operand;
using ir::ValueId;

struct Access {
  InstructionId instruction;
  size_t address = 0; // operand index
  ValueId base;
  int64_t literal = 0; // of the form of the whole address
};

// The parts of a form, without the literal in its constant.
using FormKey = std::vector<uint32_t>;

// An access and its new base; the immediate is in the operand's `immediate`.
using Rewrite = std::pair<Access, Operand>;

class CommonBases {
public:
  explicit CommonBases(const Trial& trial)
      : trial_(trial), function_(trial.kernel), forms_(trial.analyses.of<ir::LinearForms>(trial.kernel)) {}

  std::optional<Proposal> propose();

private:
  std::optional<std::pair<FormKey, int64_t>> key_of(const LinearForm& form);
  void collect();
  bool at_hand(ValueId leader, const Access& access);
  // Rewrites accesses of one form through `replaced` to use `leader` instead.
  void try_class(const std::vector<Access>& accesses);

  const Trial& trial_;
  const ir::Function& function_;
  ir::LinearForms& forms_;
  double saving_ = 0;
  std::optional<ir::Liveness> liveness_; // computed when two blocks are first compared
  std::map<FormKey, std::vector<Access>> classes_;
  std::vector<const std::vector<Access>*> class_order_;
  std::optional<ir::ReaderCounts> counts_;
  std::vector<Rewrite> rewrites_;
};

std::optional<std::pair<FormKey, int64_t>> CommonBases::key_of(const LinearForm& form) {
  if (form.kind == ir::ValueClass::any || !form.has_coefficients() || form.varies ||
      form.kind == ir::ValueClass::divergent_linear || form.kind == ir::ValueClass::mod_linear)
    return std::nullopt;
  SplitConstant constant = split_constant(forms_.expressions(), form.coefficients[0]);
  FormKey key;
  key.reserve(1 + ir::form_index::count + 2 * form.loop_count);
  key.assign({form.width, constant.symbolic.index()});
  for (unsigned place = 1; place < ir::form_index::count; ++place)
    key.push_back(form.coefficients[place].index());
  for (const ir::LoopOffset& offset : form.loops()) {
    key.push_back(offset.loop.index());
    key.push_back(offset.step.index());
  }
  for (ir::ExpressionId coefficient : form.coefficients)
    if (forms_.expressions()[coefficient].varies) return std::nullopt;
  return std::pair(std::move(key), constant.literal);
}

void CommonBases::collect() {
  for (const AddressedAccess& access : trial_.analyses.of<AddressedAccesses>(trial_.kernel).list) {
    if (!can_discharge(trial_.policy, forms_, forms_.obligations(access.base))) continue;
    auto key = key_of(access.form(forms_));
    if (!key || (key->first[0] != 64 && !ir::is_shared(function_.form_of(access.instruction).space))) continue;
    auto [row, is_new] = classes_.try_emplace(std::move(key->first));
    if (is_new) class_order_.push_back(&row->second);
    row->second.push_back({access.instruction, access.address, access.base, key->second});
  }
}

// Is the leader defined before the access on every path, and live there anyway, so that no live range grows?
bool CommonBases::at_hand(ValueId leader, const Access& access) {
  const ir::DefinitionSite& site = forms_.def_use().definition(leader);
  BlockId block = function_.instructions[access.instruction].block;
  if (site.block == block) return true; // accesses are visited in order, and an earlier one read the leader
  if (!forms_.dominators().dominates(site.block, block)) return false;
  if (!liveness_) liveness_.emplace(trial_.kernel, forms_.control_flow());
  return liveness_->is_live_in(block, leader);
}

void CommonBases::try_class(const std::vector<Access>& accesses) {
  const Access& first = accesses.front();
  std::vector<std::vector<Access>> replaced; // by base, in the order of their first accesses
  std::unordered_map<ValueId, size_t> group_of;
  for (const Access& access : accesses) {
    if (access.base == first.base) continue;
    auto [group, is_new] = group_of.try_emplace(access.base, replaced.size());
    if (is_new) replaced.emplace_back();
    replaced[group->second].push_back(access);
  }
  for (const std::vector<Access>& group : replaced) {
    std::vector<Rewrite> rewrites;
    for (const Access& access : group) {
      if (!at_hand(first.base, access)) continue;
      // Compares both registers as read at this access: the leader may hold the value of another trip than at its own
      // accesses.
      BlockId block = function_.instructions[access.instruction].block;
      auto here = key_of(forms_.address_form(access.instruction, access.address));
      auto leader = key_of(forms_.form_at(first.base, block));
      if (!here || !leader || here->first != leader->first) continue;
      int64_t immediate = here->second - leader->second;
      if (here->first[0] == 32) immediate = ir::signed_value(static_cast<uint64_t>(immediate), 32);
      if (!is_address_immediate(immediate)) continue;
      Operand base = Operand::value(first.base);
      base.immediate = immediate;
      rewrites.emplace_back(access, base);
    }
    if (rewrites.empty()) continue;
    std::vector<ValueId> released(rewrites.size(), group.front().base);
    double weight = counts_->release(
        released, [&](InstructionId id) { return execution_weight(forms_.loops(), function_.instructions[id].block); });
    if (weight <= 0) {
      counts_->undo();
      continue;
    }
    saving_ += weight;
    rewrites_.insert(rewrites_.end(), rewrites.begin(), rewrites.end());
  }
}

void rewrite_accesses(Attempt& attempt, ir::LinearForms& forms, const std::vector<Rewrite>& rewrites) {
  ir::Function& function = attempt.function();
  size_t before = 0, after = 0;
  auto count = [&](size_t& sum) {
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        sum += function.instructions[id].kind == ir::InstructionKind::real;
  };
  count(before);
  for (const auto& [access, base] : rewrites) {
    for (ValueId value : {access.base, base.as_value()})
      for (ObligationId id : forms.obligations(value))
        attempt.rest_on(forms, id, "r2d2: common base", access.instruction);
    std::span<Operand> operands = function.operands_of(access.instruction);
    operands[access.address].immediate = base.immediate;
    operands[access.address + 1] = Operand::value(base.as_value());
    attempt.remark("address taken from " + function.value_name(base.as_value()) + " and the immediate " +
                       std::to_string(base.immediate),
                   function.instructions[access.instruction].range);
  }
  function.changed();
  ir::remove_dead_code(function);
  count(after);
  attempt.statistics["r2d2.shared-addresses"] += static_cast<int64_t>(rewrites.size());
  attempt.statistics["r2d2.body-instructions-before"] += static_cast<int64_t>(before);
  attempt.statistics["r2d2.body-instructions-after"] += static_cast<int64_t>(after);
}

std::optional<Proposal> CommonBases::propose() {
  if (forms_.loops().irreducible()) return std::nullopt;
  collect();
  if (std::ranges::all_of(class_order_, [](const auto* accesses) { return accesses->size() < 2; })) return std::nullopt;
  counts_ = reader_counts(trial_.kernel, trial_.analyses);
  for (const std::vector<Access>* accesses : class_order_)
    try_class(*accesses);
  if (rewrites_.empty()) return std::nullopt;
  Proposal proposal;
  proposal.saving = saving_;
  proposal.needs_original = std::ranges::any_of(rewrites_, [&](const Rewrite& rewrite) {
    return is_checked_at_launch(trial_.policy, forms_, forms_.obligations(rewrite.first.base)) ||
           is_checked_at_launch(trial_.policy, forms_, forms_.obligations(rewrite.second.as_value()));
  });
  proposal.carry_out = [&forms = forms_, rewrites = std::move(rewrites_)](Attempt& attempt) {
    rewrite_accesses(attempt, forms, rewrites);
  };
  return proposal;
}

} // namespace

std::optional<Proposal> propose_common_bases(const Trial& trial) {
  return CommonBases(trial).propose();
}

} // namespace ptxrewrite::transforms::legal
