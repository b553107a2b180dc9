// Chooses the linear registers of one kernel. See the header for terms. The saving is estimated by liveness: the
// instructions that become dead if the sites no longer read their registers.
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/target.h"
#include "ir/machine/select/lowering.h"
#include "transforms/r2d2/r2d2_joins.h"
#include "transforms/r2d2/r2d2_planner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace ptxrewrite::transforms::r2d2 {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::LinearForm;
using ir::ValueId;
namespace form_index = ir::form_index;

constexpr size_t most_remarks = 20; // about individual dropped forms

// The part of a site's constant that its linear register must provide: all but a literal that fits an immediate.
ExpressionId base_constant(ir::ExpressionPool& pool, const LinearSite& site) {
  ExpressionId constant = site.coefficients[form_index::constant];
  SplitConstant split = split_constant(pool, constant);
  bool fits = !site.moves() || split.literal == static_cast<int32_t>(split.literal);
  return fits ? split.symbolic : constant;
}

} // namespace

Planner::Planner(ir::LinearForms& forms, const PlanOptions& options, PassContext& context)
    : forms_(forms), function_(forms.function()), options_(options), context_(context),
      liveliness_(function_, forms.control_flow(), forms.def_use().definitions()),
      cost_(function_.instructions.size()) {
  compute_capability_ = ir::target_capability(function_.module(), 0);
  ir::Lowering lowering = ir::lower(function_, compute_capability_);
  for (InstructionId id : function_.instructions.ids())
    cost_[id.index()] = lowering.cost(id).weight + lowering.cost(id).uniform;
  // Halved for each loop in which a trip may bypass the block: the increment is executed in every trip.
  const ir::LoopForest& loops = forms.loops();
  for (BlockId block : function_.blocks.ids()) {
    double often = execution_weight(loops, block);
    for (ir::LoopId loop = loops.innermost(block); loop; loop = loops.loops()[loop].parent)
      for (ir::EdgeId back : loops.loops()[loop].back_edges)
        if (!forms.dominators().dominates(block, function_.edges[back].from)) {
          often /= 2;
          break;
        }
    frequency_.push_back(often);
  }
}

// Returns the group of a site that differs at most in the constant, preferably one with the same constant.
uint32_t Planner::group_for(const LinearSite& site, std::map<std::vector<uint32_t>, std::vector<uint32_t>>& index) {
  std::vector<uint32_t> key{site.width};
  for (unsigned c = form_index::tid_x; c < form_index::count; ++c)
    key.push_back(site.coefficients[c].index());
  ExpressionId base = base_constant(forms_.expressions(), site);
  std::vector<uint32_t>& alike = index[std::move(key)];
  for (uint32_t g : alike)
    if (groups_[g].coefficients[form_index::constant] == base) return g;
  if (!site.moves() && !alike.empty()) return alike.front();
  Group group;
  group.width = site.width;
  group.coefficients = site.coefficients;
  group.coefficients[form_index::constant] = base;
  group.fixed_constant = site.moves();
  alike.push_back(static_cast<uint32_t>(groups_.size()));
  groups_.push_back(std::move(group));
  return alike.back();
}

void Planner::put_into_group(LinearSite& site, uint32_t number,
                             std::map<std::vector<uint32_t>, std::vector<uint32_t>>& index) {
  site.group = group_for(site, index);
  Group& group = groups_[site.group];
  group.sites.push_back(number);
  if (group.fixed_constant) return;
  // The simplest constant gives the simplest differences.
  ir::ExpressionPool& pool = forms_.expressions();
  ExpressionId& base = group.coefficients[form_index::constant];
  ExpressionId candidate = base_constant(pool, site);
  if (pool.terms(candidate).size() < pool.terms(base).size()) base = candidate;
}

void Planner::form_groups() {
  std::map<std::vector<uint32_t>, std::vector<uint32_t>> index;
  std::vector<bool> used = used_joins();
  // Sites with an offset first, because they cannot add a coefficient.
  for (bool moves : {true, false})
    for (uint32_t i = 0; i < sites_.size(); ++i)
      if (sites_[i].moves() == moves && sites_[i].join == none && !sites_[i].uniform && takes_part(sites_[i]))
        put_into_group(sites_[i], i, index);
  for (uint32_t i = 0; i < moves_.size(); ++i)
    if (used[moves_[i].moved_for]) put_into_group(moves_[i], static_cast<uint32_t>(sites_.size()) + i, index);
  kept_.assign(groups_.size(), true);
}

ir::Liveliness::Result Planner::simulate() const {
  std::vector<ValueId> read;
  for (const LinearSite& site : sites_)
    if (site.counter && takes_part(site)) read.push_back(site.counter);
  std::vector<bool> used = used_joins();
  for (size_t i = 0; i < joins_.size(); ++i)
    if (used[i] && joins_[i].predicate) read.push_back(joins_[i].predicate);
  return liveliness_.compute([&](InstructionId id, size_t operand) { return replaced(id, operand); }, read);
}

bool Planner::replaced(InstructionId id, size_t operand) const {
  uint32_t index = site_of_[id.index()];
  if (index == none || !takes_part(sites_[index])) return false;
  if (sites_[index].address != LinearSite::whole_result) return operand == sites_[index].address + 1;
  return !function_.operands_of(id)[operand].has(ir::OperandFlag::old_value);
}

double Planner::removed_weight(const ir::Liveliness::Result& live, size_t* count, ir::LoopId inside) const {
  double sum = 0;
  for (BlockId block : function_.layout) {
    if (inside && !forms_.loops().contains(inside, block)) continue;
    for (InstructionId id : function_.instructions_in(block)) {
      if (live.needed(id)) continue;
      sum += weight(id);
      if (count) ++*count;
    }
  }
  return sum;
}

double Planner::weight_of(std::string_view mnemonic, BlockId block) const {
  return ir::expansion_of(ir::form(ir::known_form(mnemonic)), compute_capability_, false).instructions *
         frequency(block);
}

double Planner::replacement_weight(const LinearSite& site) const {
  BlockId block = function_.instructions[site.instruction].block;
  return (site.direct ? 0 : weight_of(move_mnemonic(site.width), block)) - weight(site.instruction);
}

// For each value, the groups whose sites depended on it, through superfluous instructions and block parameters. A value
// with many groups does not help to tell them apart and is not followed further, so that long chains do not take
// quadratic time.
std::vector<std::set<uint32_t>> Planner::groups_behind(const ir::Liveliness::Result& live) const {
  constexpr size_t many = 64;
  constexpr int most_rounds = 4; // one for each loop that a value is carried around, and one more
  std::vector<std::set<uint32_t>> behind(function_.values.size());
  const std::vector<BlockId>& order = forms_.control_flow().reverse_postorder();
  bool grown = true;
  auto pass_on = [&](const std::set<uint32_t>& groups, ValueId value) {
    if (groups.size() > many) return;
    size_t before = behind[value.index()].size();
    behind[value.index()].insert(groups.begin(), groups.end());
    grown |= behind[value.index()].size() != before;
  };
  for (int round = 0; grown && round < most_rounds; ++round) {
    grown = false;
    for (auto block = order.rbegin(); block != order.rend(); ++block) {
      for (InstructionId id = function_.blocks[*block].last; id; id = function_.instructions[id].previous) {
        std::set<uint32_t> needed_by = groups_of(id, live, behind);
        if (!needed_by.empty()) ir::for_each_use(function_, id, [&](ValueId value) { pass_on(needed_by, value); });
      }
      std::span<const ValueId> parameters = function_.parameters(*block);
      for (ir::EdgeId edge : forms_.control_flow().predecessors(*block))
        for (size_t i = 0; i < parameters.size(); ++i)
          if (!live.read(parameters[i])) pass_on(behind[parameters[i].index()], function_.arguments(edge)[i]);
    }
  }
  return behind;
}

std::set<uint32_t> Planner::groups_of(InstructionId id, const ir::Liveliness::Result& live,
                                      const std::vector<std::set<uint32_t>>& behind) const {
  std::set<uint32_t> groups;
  uint32_t number = site_of_[id.index()];
  if (!live.needed(id)) {
    ir::for_each_definition(function_, id, [&](ValueId value) {
      groups.insert(behind[value.index()].begin(), behind[value.index()].end());
    });
  } else if (number != none && takes_part(sites_[number])) {
    const LinearSite& site = sites_[number];
    groups.insert(site.group);
    if (site.join != none)
      for (uint32_t move : joins_[site.join].moves)
        groups.insert(moves_[move].group);
    groups.erase(none);
  }
  return groups;
}

// Divides each superfluous instruction's weight among the groups whose sites depended on it.
void Planner::estimate_savings() {
  ir::Liveliness::Result live = simulate();
  ir::Liveliness::Result without = liveliness_.compute();
  std::vector<std::set<uint32_t>> behind = groups_behind(live);
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (live.needed(id) || !without.needed(id)) continue;
      std::set<uint32_t> groups = groups_of(id, live, behind);
      for (uint32_t group : groups)
        groups_[group].saving += weight(id) / static_cast<double>(groups.size());
    }
  for (const LinearSite& site : sites_)
    if (site.address == LinearSite::whole_result && site.group != none)
      groups_[site.group].saving -= replacement_weight(site);
}

void Planner::apply_limit() {
  std::vector<uint32_t> order(groups_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return groups_[a].saving > groups_[b].saving; });
  for (size_t i = options_.limit; i < order.size(); ++i) {
    const Group& group = groups_[order[i]];
    kept_[order[i]] = false;
    if (group.saving <= 0) continue;
    if (++dropped_by_limit_ > most_remarks) continue;
    ir::LinearForm form;
    form.kind = ir::ValueClass::linear;
    form.width = group.width;
    form.coefficients = site_at(group.sites.front()).coefficients;
    context_.remarks.emplace_back("dropped " + forms_.print(form) + ": only " + std::to_string(options_.limit) +
                                      " linear registers, and it saves less than those kept",
                                  function_.instructions[site_at(group.sites.front()).instruction].range);
  }
  if (dropped_by_limit_ > most_remarks)
    context_.remarks.emplace_back("dropped " + std::to_string(dropped_by_limit_ - most_remarks) +
                                  " further forms for the same reason");
}

void Planner::drop_useless_groups() {
  std::vector<uint32_t> order;
  for (uint32_t g = 0; g < groups_.size(); ++g)
    if (kept_[g]) order.push_back(g);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return groups_[a].saving < groups_[b].saving; });
  double best = gain();
  for (uint32_t g : order) {
    kept_[g] = false;
    double without = gain();
    if (without < best)
      kept_[g] = true;
    else
      best = without;
  }
}

Plan Planner::run() {
  site_of_.assign(function_.instructions.size(), none);
  order_.assign(function_.instructions.size(), none);
  reads_sum_.assign(function_.instructions.size(), false);
  uint32_t place = 0;
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block))
      order_[id.index()] = place++;
  find_address_sites();
  choose_offsets_of_addresses();
  drop_useless_increments();
  drop_useless_joins();
  find_result_sites();
  form_groups();
  estimate_savings();
  apply_limit();
  drop_useless_groups();
  return result();
}

Plan Planner::result() {
  Plan plan;
  plan.dropped_by_limit = dropped_by_limit_;
  std::vector<uint32_t> new_group(groups_.size(), none), new_increment(increments_.size(), none);
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (!kept_[i]) continue;
    new_group[i] = static_cast<uint32_t>(plan.groups.size());
    plan.groups.push_back(groups_[i]);
    plan.groups.back().sites.clear();
  }
  std::vector<bool> used = used_increments();
  for (uint32_t i = 0; i < increments_.size(); ++i) {
    if (!used[i]) continue;
    new_increment[i] = static_cast<uint32_t>(plan.increments.size());
    plan.increments.push_back(increments_[i]);
    if (increments_[i].parent != none) plan.increments.back().parent = new_increment[increments_[i].parent];
  }
  ir::Liveliness::Result live = simulate();
  ir::Liveliness::Result without = liveliness_.compute();
  plan.removed_weight = removed_weight(live, &plan.removed_instructions) - removed_weight(without) - added_weight();
  std::vector<uint32_t> new_join(joins_.size(), none);
  std::vector<bool> joined = used_joins();
  for (uint32_t i = 0; i < joins_.size(); ++i) {
    if (!joined[i]) continue;
    new_join[i] = static_cast<uint32_t>(plan.joins.size());
    plan.joins.push_back(joins_[i]);
    plan.joins.back().moves.clear();
  }
  std::vector<bool> taken;
  for (const LinearSite& site : sites_)
    taken.push_back(takes_part(site));
  auto take = [&](LinearSite& site) {
    auto number = static_cast<uint32_t>(plan.sites.size());
    if (site.increment != none) site.increment = new_increment[site.increment];
    if (site.join != none) site.join = new_join[site.join];
    if (site.moved_for != none) plan.joins[site.moved_for = new_join[site.moved_for]].moves.push_back(number);
    if (site.group != none) plan.groups[site.group = new_group[site.group]].sites.push_back(number);
    plan.sites.push_back(std::move(site));
  };
  for (uint32_t i = 0; i < sites_.size(); ++i)
    if (taken[i]) take(sites_[i]);
  for (LinearSite& move : moves_)
    if (joined[move.moved_for]) take(move);
  for (const auto& [why, where] : unused_)
    context_.remarks.emplace_back(
        why + (where.first > 1 ? " (" + std::to_string(where.first) + " places)" : std::string()), where.second);
  return plan;
}

bool Group::has_thread_part(const ir::ExpressionPool& pool) const {
  return !(pool.is_zero(coefficients[form_index::tid_x]) && pool.is_zero(coefficients[form_index::tid_y]) &&
           pool.is_zero(coefficients[form_index::tid_z]));
}

bool Group::has_block_indices(const ir::ExpressionPool& pool) const {
  return !(pool.is_zero(coefficients[form_index::ctaid_x]) && pool.is_zero(coefficients[form_index::ctaid_y]) &&
           pool.is_zero(coefficients[form_index::ctaid_z]));
}

Plan make_plan(ir::LinearForms& forms, const PlanOptions& options, PassContext& context) {
  return Planner(forms, options, context).run();
}

} // namespace ptxrewrite::transforms::r2d2
