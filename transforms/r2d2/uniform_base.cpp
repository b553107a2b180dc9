// Uniform base + 32-bit offset: accesses whose addresses have the same thread, block and loop part but different
// launch-uniform parts, such as the rows and planes of a stencil or several arrays at one index, all become
//
//     mul.wide.s32  scaled, offset, scale                 once
//     add.s64       address, scaled, base_i               base_i the same for all threads of the launch
//
// with one 32-bit offset for all of them. The machine computes each sum and product in one instruction, with the base
// as an operand from the constant bank or a uniform register (ptxas splits mad.wide into two or three), whereas the
// original computes an index for each access, or keeps one induction variable for each. The offset is an existing value
// of the kernel if there is one, otherwise it is computed at the entry. It is widened as signed or unsigned, so it
// needs no bias; an obligation of this rewrite is that it does not wrap.
//
// Candidate 5 creates the offset as a new induction variable of the loop around the accesses, for kernels that advance
// one 64-bit pointer for each access, or compute indices in every trip.
#include "transforms/r2d2/uniform_base.h"

#include "ir/core/builder.h"
#include "ir/edit/dead_code.h"
#include "transforms/common/cost.h"
#include "transforms/r2d2/base_plans.h"
#include "transforms/r2d2/r2d2_sections.h"

#include <algorithm>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::ObligationId;
using ir::Operand;
using ir::ValueId;
namespace form_index = ir::form_index;

constexpr std::string_view reason = "r2d2: uniform base and 32-bit offset";
// A block that dominates the accesses and follows the offset, outside of loops in which the offset is invariant.
BlockId block_of(const ir::Function& kernel, const ir::LinearForms& forms, const BaseGroup& group,
                 const SharedOffset& offset) {
  const ir::DominatorTree& dominators = forms.dominators();
  BlockId block = kernel.instructions[group.accesses.front().instruction].block;
  for (const BaseAccess& access : group.accesses)
    while (!dominators.dominates(block, kernel.instructions[access.instruction].block))
      block = dominators.immediate_dominator(block);
  BlockId definition = offset.home;
  while (forms.loops().depth(block) > forms.loops().depth(definition) && block != definition) {
    BlockId header = forms.loops().loops()[forms.loops().innermost(block)].header;
    BlockId outside = dominators.immediate_dominator(header);
    if (!outside || !dominators.dominates(definition, outside)) break;
    block = outside;
  }
  return block;
}

bool is_induction(const SharedOffset& offset) {
  return !offset.value.valid() && offset.form.loop_count != 0;
}

// Chooses the plans that save work.
class PlanChoice {
public:
  PlanChoice(const Trial& trial, const UniformBaseOptions& options)
      : trial_(trial), options_(options), forms_(trial.analyses.of<ir::LinearForms>(trial.kernel)),
        pool_(forms_.expressions()) {}

  // Fills the saving and the numbers of the plans.
  void choose(const std::vector<BasePlan>& plans, Proposal& proposal) {
    bool needs_original = false;
    for (uint32_t number = 0; number < plans.size(); ++number) {
      if (!pays(plans[number], proposal.saving)) continue;
      proposal.edits.push_back(number);
      needs_original |= is_checked(plans[number]);
    }
    proposal.needs_original = needs_original;
  }

private:
  bool pays(const BasePlan& plan, double& saving);
  bool is_checked(const BasePlan& plan) const {
    auto by_launch = [&](const auto& conditions) { return is_checked_at_launch(trial_.policy, forms_, conditions); };
    if (plan.offset.value.valid() && by_launch(forms_.obligations(plan.offset.value))) return true;
    return std::ranges::any_of(plan.groups, [&](const BaseGroup& group) {
      return std::ranges::any_of(group.accesses, [&](const BaseAccess& access) {
        return by_launch(forms_.obligations(access.base)) || by_launch(access.in_range);
      });
    });
  }

  const Trial& trial_;
  UniformBaseOptions options_;
  const ir::LinearForms& forms_;
  const ir::ExpressionPool& pool_;
  std::optional<ir::ReaderCounts> counts_; // computed when a choice is first evaluated
};

bool PlanChoice::pays(const BasePlan& plan, double& saving) {
  if (options_.force) return true;
  if (!counts_) counts_ = reader_counts(trial_.kernel, trial_.analyses);
  const InstructionCosts& costs = trial_.analyses.of<InstructionCosts>(trial_.kernel);
  const SharedOffset& offset = plan.offset;
  double added = 0;
  std::vector<ValueId> released;
  for (const BaseGroup& group : plan.groups) {
    added += execution_weight(forms_.loops(), block_of(trial_.kernel, forms_, group, offset));
    if (!options_.bases_at_launch) added += pool_[group.base].size - 1;
    for (const BaseAccess& access : group.accesses)
      released.push_back(access.base);
  }
  if (!offset.value.valid()) {
    for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
      added += !pool_.is_zero(offset.form.coefficients[place]);
    if (is_induction(offset)) added += execution_weight(forms_.loops(), offset.home);
  } else {
    counts_->add_reader(offset.value);
  }
  double removed = counts_->release(released, [&](InstructionId id) { return costs.of(id); });
  if (removed > added) {
    saving += removed - added;
    return true;
  }
  counts_->undo();
  if (offset.value.valid()) counts_->drop_reader(offset.value);
  return false;
}

// Carries plans out.
class UniformBases {
public:
  UniformBases(Attempt& attempt, ir::LinearForms& forms, const BasePlans& plans, bool inductions)
      : attempt_(attempt), function_(attempt.function()), inductions_(inductions), forms_(forms),
        pool_(forms_.expressions()), positions_(plans.positions), builder_(function_),
        writer_(function_, builder_, pool_, ir::RegisterClass::general) {}

  void run(const std::vector<BasePlan>& plans, const std::vector<uint32_t>& chosen);

private:
  InstructionId place_in(BlockId block, const BaseGroup& group) const;
  uint32_t position(InstructionId id) const { return positions_[id.index()]; }
  void write_offset(SharedOffset& offset);
  void write_induction(SharedOffset& offset, Operand start);
  ValueId scaled_offset(const SharedOffset& offset, BlockId block, InstructionId place);
  void rest_on(std::span<const ObligationId> obligations, InstructionId where);
  void rewrite(const BasePlan& plan);

  Attempt& attempt_;
  ir::Function& function_;
  bool inductions_; // candidate 5
  ir::LinearForms& forms_;
  ir::ExpressionPool& pool_;
  const std::vector<uint32_t>& positions_; // by InstructionId of the kernel: position in its block
  ir::Builder builder_;
  CoefficientWriter writer_;
  // The scaled offset of the plan being carried out: inserted before the instruction at `position` of its block.
  struct Product {
    ValueId value;
    BlockId block;
    uint32_t position = 0;
  };
  std::vector<Product> products_;
  std::vector<bool> rested_on_; // by ObligationId
  InstructionId head_; // the first real instruction of the original; bases are computed before it; invalid: none
  size_t rewritten_ = 0, bases_ = 0;
};

// The first access there, or the block's end.
InstructionId UniformBases::place_in(BlockId block, const BaseGroup& group) const {
  InstructionId first;
  for (const BaseAccess& access : group.accesses)
    if (function_.instructions[access.instruction].block == block &&
        (!first || position(access.instruction) < position(first)))
      first = access.instruction;
  return first ? first : function_.terminator(block); // invalid: at the end
}

void UniformBases::write_offset(SharedOffset& offset) {
  std::optional<Operand> sum;
  for (unsigned place = form_index::tid_x; place < form_index::count; ++place) {
    ExpressionId coefficient = offset.form.coefficients[place];
    if (pool_.is_zero(coefficient)) continue;
    unsigned component = place - form_index::tid_x;
    ir::SpecialRegister special = component < 3 ? ir::SpecialRegister::tid : ir::SpecialRegister::ctaid;
    ValueId index = builder_.emit_value(
        "mov.u32", ir::ScalarType::b32,
        {Operand::special(static_cast<uint32_t>(special), ir::component_selector(component % 3))}, "%r");
    Operand factor = writer_.write(coefficient);
    if (pool_.is_literal(coefficient, 1) && !sum)
      sum = Operand::value(index);
    else
      sum = Operand::value(builder_.emit_value(
          "mad.lo.s32", ir::ScalarType::b32, {Operand::value(index), factor, sum.value_or(Operand::integer(0))}, "%r"));
  }
  if (is_induction(offset))
    write_induction(offset, sum.value_or(Operand::integer(0)));
  else
    offset.value = sum->as_value();
}

// A block parameter of the loop's header, advanced at the end of every latch.
void UniformBases::write_induction(SharedOffset& offset, Operand start) {
  const ir::Loop& loop = forms_.loops().loops()[offset.form.loop_offsets[0].loop];
  if (!start.is(ir::OperandKind::value))
    start = Operand::value(builder_.emit_value("mov.b32", ir::ScalarType::b32, {start}, "%r"));
  Operand step = writer_.write(offset.form.loop_offsets[0].step);
  ValueId moving = builder_.new_value(ir::ScalarType::b32, "%r");
  std::span<const ValueId> old = function_.parameters(loop.header);
  std::vector<ValueId> parameters(old.begin(), old.end());
  parameters.push_back(moving);
  function_.set_parameters(loop.header, parameters);
  for (ir::EdgeId edge : forms_.control_flow().predecessors(loop.header)) {
    ValueId next = start.as_value();
    if (std::ranges::find(loop.back_edges, edge) != loop.back_edges.end()) {
      BlockId from = function_.edges[edge].from;
      if (InstructionId end = function_.terminator(from))
        builder_.before(end);
      else
        builder_.at_end(from);
      next = builder_.emit_value("add.s32", ir::ScalarType::b32, {Operand::value(moving), step}, "%r");
    }
    std::span<const ValueId> passed = function_.arguments(edge);
    std::vector<ValueId> arguments(passed.begin(), passed.end());
    arguments.push_back(next);
    function_.set_arguments(edge, arguments);
  }
  offset.value = moving;
}

// Returns the product of the offset and its scale: one already written for another base, or a new one here.
ValueId UniformBases::scaled_offset(const SharedOffset& offset, BlockId block, InstructionId place) {
  const uint32_t here = place ? position(place) : UINT32_MAX;
  for (const Product& product : products_)
    if (product.block == block ? product.position <= here : forms_.dominators().dominates(product.block, block))
      return product.value;
  ValueId scaled = builder_.emit_value(offset.is_signed ? "mul.wide.s32" : "mul.wide.u32", ir::ScalarType::b64,
                                       {Operand::value(offset.value), Operand::integer(offset.scale)}, "%rd");
  products_.push_back({scaled, block, here});
  return scaled;
}

void UniformBases::rest_on(std::span<const ObligationId> obligations, InstructionId where) {
  for (ObligationId id : obligations) {
    if (id.index() >= rested_on_.size()) rested_on_.resize(id.index() + 1);
    if (!rested_on_[id.index()]) attempt_.rest_on(forms_, id, reason, where);
    rested_on_[id.index()] = true;
  }
}

void UniformBases::rewrite(const BasePlan& plan) {
  const std::vector<BaseGroup>& groups = plan.groups;
  SharedOffset offset = plan.offset;
  if (offset.value.valid()) rest_on(forms_.obligations(offset.value), groups.front().accesses.front().instruction);
  // Finds places first: the definition of a new value is not in the tables.
  std::vector<std::pair<BlockId, InstructionId>> places;
  for (const BaseGroup& group : groups) {
    const BlockId block = block_of(function_, forms_, group, offset);
    places.emplace_back(block, place_in(block, group));
  }
  auto go_to = [&](BlockId block, InstructionId place) {
    if (place)
      builder_.before(place);
    else
      builder_.at_end(block);
  };
  products_.clear();
  for (size_t i = 0; i < groups.size(); ++i) {
    const BaseGroup& group = groups[i];
    go_to(function_.entry(), head_);
    Operand base = writer_.write(group.base);
    if (!offset.value.valid()) write_offset(offset);
    go_to(places[i].first, places[i].second);
    const ValueId scaled = scaled_offset(offset, places[i].first, places[i].second);
    const ValueId address = builder_.emit_value("add.s64", ir::ScalarType::b64, {Operand::value(scaled), base}, "%rd");
    for (const BaseAccess& access : group.accesses) {
      rest_on(forms_.obligations(access.base), access.instruction);
      rest_on({&access.in_range, 1}, access.instruction);
      std::span<Operand> operands = function_.operands_of(access.instruction);
      operands[access.address].immediate = access.immediate;
      operands[access.address + 1] = Operand::value(address);
      ++rewritten_;
    }
    ++bases_;
  }
}

void UniformBases::run(const std::vector<BasePlan>& plans, const std::vector<uint32_t>& chosen) {
  head_ = function_.blocks[function_.entry()].first;
  while (head_ && function_.instructions[head_].kind != ir::InstructionKind::real)
    head_ = function_.instructions[head_].next;
  for (uint32_t number : chosen)
    rewrite(plans[number]);
  function_.changed();
  ir::remove_dead_code(function_);
  attempt_.statistics["r2d2.uniform-bases"] += static_cast<int64_t>(bases_);
  attempt_.statistics["r2d2.uniform-base-accesses"] += static_cast<int64_t>(rewritten_);
  attempt_.remark(std::to_string(rewritten_) + " addresses are " + std::to_string(bases_) +
                      " launch-uniform bases plus " +
                      (inductions_ ? "32-bit induction variables" : "shared 32-bit offsets"),
                  function_.header_range);
}

std::optional<Proposal> propose(const Trial& trial, const UniformBaseOptions& options, bool inductions) {
  BasePlans& base_plans = trial.analyses.of<BasePlans>(trial.kernel);
  const std::vector<BasePlan>& plans = base_plans.of(trial.analyses, trial.policy, inductions);
  if (plans.empty()) return std::nullopt;
  Proposal proposal;
  PlanChoice(trial, options).choose(plans, proposal);
  if (proposal.edits.empty()) return std::nullopt;
  ir::LinearForms& forms = trial.analyses.of<ir::LinearForms>(trial.kernel);
  proposal.carry_out = [&forms, &base_plans, &plans, chosen = proposal.edits, inductions](Attempt& attempt) {
    UniformBases(attempt, forms, base_plans, inductions).run(plans, chosen);
  };
  return proposal;
}

} // namespace

bool has_base_plans(const ir::Function& kernel, AnalysisCache& analyses, const DischargePolicy& policy,
                    bool inductions) {
  return !analyses.of<BasePlans>(kernel).of(analyses, policy, inductions).empty();
}

std::optional<Proposal> propose_offsets(const Trial& trial, const UniformBaseOptions& options) {
  return propose(trial, options, false);
}

std::optional<Proposal> propose_inductions(const Trial& trial, const UniformBaseOptions& options) {
  return propose(trial, options, true);
}

} // namespace ptxrewrite::transforms::legal
