// Collects candidates and their operands, and drops candidates until the plan is consistent.
#include "transforms/dac/dac_plan.h"

#include "ir/forms/dac.h"
#include "ir/machine/figures/target.h"
#include "ir/machine/select/lowering.h"
#include "transforms/common/address_forms.h"
#include "transforms/dac/dac_body.h"

#include <algorithm>

namespace ptxrewrite::transforms::dac {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::StateSpace;
using ir::ValueId;

namespace {

constexpr unsigned stack_limit = 7;       // nested divergent branches: the affine SIMT stack has 8 entries (4.8)
constexpr double predicate_benefit = 0.5; // of a predicate that crosses over, relative to an address

class Planner {
public:
  Planner(ir::LinearForms& forms, const AffineClasses& classes)
      : forms_(forms), function_(forms.function()), classes_(classes), dependence_(function_, forms.control_flow()),
        numbers_(number_instructions(function_)), ordered_(ordered_after_others(forms)) {}

  Plan run() {
    InstructionId at;
    plan_.refusal = why_not_split(forms_, classes_, dependence_, at);
    if (at) plan_.refused_at = function_.instructions[at].range;
    if (!plan_.refusal.empty()) return std::move(plan_);
    find_joined();
    find_addresses();
    do {
      find_predicates();
      close();
    } while (gives_more() || give_up_what_is_too_deep() || give_up_what_does_not_pay());
    finish();
    return std::move(plan_);
  }

private:
  // ---------------------------------------------------------------- candidates

  // Finds accesses to shared memory that ptxas merges into one instruction, because their addresses are the same
  // register plus literals. With addresses from queues each would be a separate instruction, which costs more than
  // decoupling saves.
  void find_joined() {
    const ir::Lowering lowering = ir::lower(function_, ir::target_capability(function_.module()));
    for (BlockId block : function_.layout) {
      std::map<uint32_t, std::vector<InstructionId>> by_address; // by address register
      std::set<uint32_t> joined;
      for (InstructionId id : function_.instructions_in(block)) {
        const std::optional<size_t> address = rewritable_address(function_, id);
        if (!address || !ir::is_shared(function_.form_of(id).space)) continue;
        const Operand& base = function_.operands_of(id)[*address + 1];
        if (!base.is(OperandKind::value)) continue;
        by_address[base.id].push_back(id);
        if (lowering.needed(id) && lowering.cost(id).weight == 0) joined.insert(base.id);
      }
      for (uint32_t address : joined)
        joined_.insert(by_address[address].begin(), by_address[address].end());
    }
  }

  void find_addresses() {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (std::optional<size_t> address = rewritable_address(function_, id)) consider_access(id, *address);
  }

  void consider_access(InstructionId id, size_t address) {
    const ir::Instruction& instruction = function_.instructions[id];
    const ir::Form& form = function_.form_of(id);
    auto stay = [&](std::string reason) { plan_.staying.push_back({id, std::move(reason)}); };
    if (form.space != StateSpace::none && form.space != StateSpace::global && form.space != StateSpace::local &&
        form.space != StateSpace::shared && form.space != StateSpace::shared_cta)
      return stay("constant memory and that of other blocks has no queue");
    if (form.opcode == Opcode::ldu) return stay("ldu has no queue");
    if (joined_.contains(id)) return stay("the assembler joins it with its neighbours in shared memory");
    const AffineClass row = classes_.of_operand(function_.operands_of(id)[address + 1], instruction.block);
    if (!row.is_affine()) return stay("its address is not affine: " + explain(row));
    if (instruction.guard) {
      const AffineClass guard = classes_.at(instruction.guard, instruction.block);
      if (!guard.is_affine()) return stay("its guard is not affine: " + explain(guard));
    }
    DacSite site;
    site.kind = is_early_load(id, form) ? SiteKind::data : SiteKind::address;
    site.instruction = id;
    site.address = address;
    site.number = numbers_[id.index()];
    accesses_.push_back(site);
  }

  // May the data be requested long before the load is executed?
  bool is_early_load(InstructionId id, const ir::Form& form) const {
    if (form.opcode != Opcode::ld || form.effects.atomic || form.effects.volatile_result) return false;
    if (form.space != StateSpace::global && form.space != StateSpace::local) return false;
    // After a fence or an atomic operation the load may be meant to observe writes of another block, which a line
    // fetched early does not show.
    return form.has(Modifier::nc) || form.space == StateSpace::local || !ordered_[id.index()];
  }

  std::string explain(const AffineClass& row) const {
    std::string text(row.reason);
    if (row.culprit && !function_.instructions[row.culprit].range.empty() &&
        function_.instructions[row.culprit].kind == InstructionKind::real)
      text += " (" + std::string(function_.form_of(row.culprit).mnemonic) + ", line " +
              std::to_string(function_.module().source.locate(function_.instructions[row.culprit].range.begin).line) +
              ")";
    return text;
  }

  bool is_eligible_predicate(InstructionId id) const {
    if (function_.instructions[id].kind != InstructionKind::real || function_.instructions[id].guard) return false;
    const ir::Form& form = function_.form_of(id);
    switch (form.opcode) {
    case Opcode::setp:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::not_:
      break;
    default:
      return false;
    }
    std::span<const Operand> operands = function_.operands_of(id);
    if (!operands[0].is(OperandKind::value) || function_.values[operands[0].as_value()].type != ScalarType::pred)
      return false;
    return classes_.of(operands[0].as_value()).is_affine();
  }

  // Finds predicates that the body still reads when addresses and predicates come from queues.
  void find_predicates() {
    std::vector<bool> crosses(function_.instructions.size());
    std::vector<size_t> address_of(function_.instructions.size(), SIZE_MAX);
    for (const DacSite& site : accesses_)
      address_of[site.instruction.index()] = site.address + 1;
    std::vector<InstructionId> eligible;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (is_eligible_predicate(id) && !dropped_.contains(id)) {
          crosses[id.index()] = true;
          eligible.push_back(id);
        }
    const BodyNeeds needs = body_needs(
        function_, forms_.control_flow(), forms_.def_use(), dependence_,
        [&](InstructionId id, size_t operand) { return crosses[id.index()] || address_of[id.index()] == operand; },
        given_);
    plan_.needed_in_body = needs.branches;
    plan_.sites = accesses_;
    for (InstructionId id : eligible) {
      if (!needs.instructions[id.index()]) continue;
      DacSite site;
      site.kind = SiteKind::predicate;
      site.instruction = id;
      site.number = numbers_[id.index()];
      site.reader = only_reader(id);
      plan_.sites.push_back(site);
    }
    std::ranges::sort(plan_.sites, {}, &DacSite::number);
  }

  // Returns the only reader, if it uses the predicate as its guard and follows the definition in its block.
  InstructionId only_reader(InstructionId id) const {
    const ValueId value = function_.operands_of(id)[0].as_value();
    std::span<const ir::Use> uses = forms_.def_use().uses(value);
    if (uses.size() != 1 || !uses[0].instruction || uses[0].index != ir::Use::guard_index) return {};
    const InstructionId reader = uses[0].instruction;
    return function_.instructions[reader].block == function_.instructions[id].block ? reader : InstructionId();
  }

  // ---------------------------------------------------------------- closure over operands

  void close() {
    plan_.in_affine.assign(function_.instructions.size(), false);
    plan_.needed.assign(function_.values.size(), false);
    plan_.relevant_branch.assign(function_.blocks.size(), false);
    reached_.assign(function_.blocks.size(), false);
    plan_.given.clear();
    plan_.barriers.clear();
    for (const DacSite& site : plan_.sites)
      need_site(site);
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (function_.instructions[id].kind == InstructionKind::real && is_block_barrier(function_, id))
          need_barrier(id);
    while (!values_.empty() || !blocks_.empty()) {
      if (!values_.empty()) {
        const ValueId value = values_.back();
        values_.pop_back();
        trace(value);
      } else {
        const BlockId block = blocks_.back();
        blocks_.pop_back();
        for (BlockId branch : dependence_.controllers(block))
          need_branch(branch);
      }
    }
  }

  void need_site(const DacSite& site) {
    need_block(function_.instructions[site.instruction].block);
    if (site.kind == SiteKind::predicate) {
      need(function_.operands_of(site.instruction)[0].as_value());
      return;
    }
    need(function_.operands_of(site.instruction)[site.address + 1].as_value());
    if (ValueId guard = function_.instructions[site.instruction].guard) need(guard);
  }

  void need_barrier(InstructionId id) {
    plan_.barriers.push_back(id);
    need_block(function_.instructions[id].block);
    for (const Operand& operand : function_.operands_of(id))
      if (operand.is(OperandKind::value) && !operand.is_definition() &&
          function_.values[operand.as_value()].type != ScalarType::pred)
        need(operand.as_value());
  }

  void need(ValueId value) {
    if (plan_.needed[value.index()]) return;
    plan_.needed[value.index()] = true;
    values_.push_back(value);
  }
  void need_block(BlockId block) {
    if (reached_[block.index()]) return;
    reached_[block.index()] = true;
    blocks_.push_back(block);
  }

  // Adds a branch, or an exit that only some threads take.
  void need_branch(BlockId block) {
    if (plan_.relevant_branch[block.index()]) return;
    plan_.relevant_branch[block.index()] = true;
    need_block(block);
    const InstructionId last = function_.terminator(block);
    const ValueId guard = function_.instructions[last].guard;
    if (classes_.at(guard, block).is_affine())
      need(guard);
    else
      plan_.given.push_back({last, 0});
  }

  void trace(ValueId value) {
    const ir::DefinitionSite& site = forms_.def_use().definition(value);
    if (site.is_parameter()) {
      need_block(site.block);
      for (EdgeId edge : forms_.control_flow().predecessors(site.block)) {
        const BlockId from = function_.edges[edge].from;
        need(function_.arguments(edge)[site.parameter]);
        need_block(from);
        if (function_.successors(from).size() > 1) need_branch(from);
      }
      return;
    }
    if (!site.instruction) return; // undefined
    plan_.in_affine[site.instruction.index()] = true;
    need_block(site.block);
    ir::for_each_use(function_, site.instruction, [&](ValueId used) { need(used); });
  }

  // The body must compute the predicates that it gives, where it computes them. Returns whether there are new ones.
  bool gives_more() {
    const size_t before = given_.size();
    for (const Given& given : plan_.given)
      if (std::ranges::find(given_, given.instruction) == given_.end()) given_.push_back(given.instruction);
    return given_.size() != before;
  }

  // ---------------------------------------------------------------- profitability

  // A predicate that the body must give costs each warp an instruction, and makes the affine warp wait. It pays only if
  // it brings sites into the affine stream.
  bool give_up_what_does_not_pay() {
    bool changed = false;
    for (const Given& given : plan_.given) {
      const BlockId branch = function_.instructions[given.instruction].block;
      const std::vector<bool> governed = dependence_.governed_by(branch);
      auto is_governed = [&](InstructionId id) { return bool(governed[function_.instructions[id].block.index()]); };
      if (std::ranges::any_of(plan_.barriers, is_governed)) continue;
      double benefit = 0;
      for (const DacSite& site : plan_.sites)
        if (is_governed(site.instruction))
          benefit += weight(site.instruction) * (site.kind == SiteKind::predicate ? predicate_benefit : 1);
      if (benefit == 0 || benefit > weight(given.instruction)) continue;
      auto leave = [&](const DacSite& site) {
        if (!is_governed(site.instruction)) return false;
        plan_.staying.push_back({site.instruction, "the body would have to give the affine stream a predicate for it"});
        dropped_.insert(site.instruction);
        changed = true;
        return true;
      };
      for (const DacSite& site : plan_.sites)
        if (site.kind == SiteKind::predicate) leave(site);
      std::erase_if(accesses_, leave);
      if (changed) return true;
    }
    return false;
  }

  double weight(InstructionId id) const { return execution_weight(forms_.loops(), function_.instructions[id].block); }

  // ---------------------------------------------------------------- result

  void finish() {
    const bool any = !plan_.sites.empty();
    if (!any) {
      plan_.refusal = "nothing that it computes for addresses and predicates is affine";
      return;
    }
    if (!has_room_on_stack()) {
      plan_.refusal = "divergent branches are nested deeper than the affine SIMT stack";
      return;
    }
    uint32_t number = 0;
    for (uint32_t place : numbers_)
      number = std::max(number, place);
    // Numbered after the instructions: one instruction may compute the predicates of several branches.
    std::ranges::sort(plan_.given, {}, [&](const Given& given) { return given.instruction; });
    for (Given& given : plan_.given)
      given.number = ++number;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (plan_.in_affine[id.index()]) {
          if (classes_.is_sum_by_or(id)) plan_.sums_by_or.insert(id);
          plan_.obligations.insert(classes_.obligations(id).begin(), classes_.obligations(id).end());
        }
    find_divergent_joins();
  }

  void find_divergent_joins() {
    for (BlockId block : function_.layout) {
      bool divergent = false;
      for (ValueId parameter : function_.parameters(block)) {
        const AffineClass& row = classes_.of(parameter);
        const uint64_t here = uint64_t(1) << 32 | block.index();
        divergent |= plan_.needed[parameter.index()] &&
                     std::find(row.conditions.begin(), row.conditions.begin() + row.condition_count, here) !=
                         row.conditions.begin() + row.condition_count;
      }
      if (divergent) plan_.divergent_joins.push_back(block);
    }
  }

  // By block: the number of branch sides of the affine stream that are pending there, besides the first stack entry.
  std::vector<unsigned> depths_of_divergence() const {
    std::vector<unsigned> depth(function_.blocks.size());
    for (BlockId branch : function_.layout) {
      if (!plan_.relevant_branch[branch.index()] || classes_.branch_is_uniform(branch) ||
          function_.successors(branch).size() < 2)
        continue;
      const BlockId meeting = dependence_.post_dominators().immediate_post_dominator(branch);
      std::vector<bool> seen(function_.blocks.size());
      std::vector<BlockId> work;
      // A side that leads directly to the join needs no entry.
      unsigned sides = 0;
      for (EdgeId edge : function_.successors(branch)) {
        sides += function_.edges[edge].to != meeting;
        work.push_back(function_.edges[edge].to);
      }
      if (!meeting) sides = 1;
      while (!work.empty()) {
        const BlockId block = work.back();
        work.pop_back();
        if (block == meeting || seen[block.index()]) continue;
        seen[block.index()] = true;
        depth[block.index()] += sides;
        for (EdgeId edge : function_.successors(block))
          work.push_back(function_.edges[edge].to);
      }
    }
    return depth;
  }

  bool has_room_on_stack() const {
    const std::vector<unsigned> depths = depths_of_divergence();
    return std::ranges::none_of(function_.layout, [&](BlockId block) {
      return reached_[block.index()] && depths[block.index()] > stack_limit;
    });
  }

  // Sites nested too deep for the affine SIMT stack stay in the body, together with the branches around them.
  bool give_up_what_is_too_deep() {
    const std::vector<unsigned> depths = depths_of_divergence();
    bool changed = false;
    auto leave = [&](const DacSite& site) {
      if (depths[function_.instructions[site.instruction].block.index()] <= stack_limit) return false;
      plan_.staying.push_back({site.instruction, "divergent branches around it are nested too deep"});
      dropped_.insert(site.instruction);
      changed = true;
      return true;
    };
    for (const DacSite& site : plan_.sites)
      if (site.kind == SiteKind::predicate) leave(site);
    std::erase_if(accesses_, leave);
    return changed;
  }

  ir::LinearForms& forms_;
  const ir::Function& function_;
  const AffineClasses& classes_;
  ControlDependence dependence_;
  std::vector<uint32_t> numbers_;
  std::vector<bool> ordered_;
  Plan plan_;
  std::vector<DacSite> accesses_; // address sites
  std::set<InstructionId> dropped_, joined_;
  std::vector<InstructionId> given_; // branches whose predicates the body gave in some round
  std::vector<bool> reached_;        // by BlockId
  std::vector<ValueId> values_;
  std::vector<BlockId> blocks_;
};

} // namespace

std::vector<uint32_t> number_instructions(const ir::Function& function) {
  std::vector<uint32_t> numbers(function.instructions.size());
  uint32_t next = 0;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      const Opcode opcode = function.form_of(id).opcode;
      if (opcode != Opcode::mov && opcode != Opcode::bra) numbers[id.index()] = next++;
    }
  return numbers;
}

Plan make_plan(ir::LinearForms& forms, const AffineClasses& classes) {
  return Planner(forms, classes).run();
}

} // namespace ptxrewrite::transforms::dac
