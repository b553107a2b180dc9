// Chooses the linear registers of one kernel. See the header for terms; the estimate of what is saved is a liveness
// question: what would be dead if the sites no longer read their registers?
#include "transforms/r2d2_plan.h"

#include "transforms/dce.h"
#include "transforms/r2d2_sections.h"

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
using ir::ObligationId;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;
namespace FormIndex = ir::FormIndex;

constexpr size_t most_remarks = 20; // about dropped forms, one by one

// Addresses in these spaces have 32 significant bits whatever the register's width.
bool is_small_space(ir::StateSpace space) {
  return ir::is_shared(space) || space == ir::StateSpace::constant || space == ir::StateSpace::local;
}

class Planner {
public:
  Planner(ir::LinearForms& forms, const PlanOptions& options, PassContext& context)
      : forms_(forms), function_(forms.function()), options_(options), context_(context),
        liveliness_(function_, forms.control_flow(), forms.def_use()) {}

  Plan run();

private:
  // Whether a form can be used here; fills coefficients and obligations of the site.
  bool usable(const LinearForm& form, ValueId value, Site& site);
  bool dischargeable(ObligationId id);
  void pull_extensions_out(Site& site);
  void find_address_sites();
  void find_result_sites();
  void form_groups();
  void estimate_savings();
  void apply_limit();
  void drop_useless_groups();
  // Sites with `active` and a kept group take part.
  Liveliness::Result simulate() const;
  // An operand that a site which takes part no longer reads.
  bool replaced(InstructionId id, size_t operand) const;
  double removed_weight(const Liveliness::Result& live, size_t* count = nullptr) const;
  bool takes_part(const Site& site) const { return site.group == UINT32_MAX || kept_[site.group]; }
  double weight(InstructionId id) const { return execution_weight(forms_.loops(), function_.instructions[id].block); }
  void explain_unused(InstructionId id, const std::string& why);

  ir::LinearForms& forms_;
  const ir::Function& function_;
  const PlanOptions& options_;
  PassContext& context_;
  Liveliness liveliness_;
  std::vector<Site> sites_;
  std::vector<Group> groups_;
  std::vector<bool> kept_;        // by group
  std::vector<uint32_t> site_of_; // by InstructionId; UINT32_MAX
  std::map<std::string, std::pair<size_t, SourceRange>> unused_;
  size_t dropped_by_limit_ = 0;
};

bool Planner::dischargeable(ObligationId id) {
  const ir::Obligation& obligation = forms_.obligation(id);
  if (obligation.proved || options_.assume_no_overflow) return true;
  return options_.launch_checks && !forms_.launch_predicate(id).empty();
}

void Planner::explain_unused(InstructionId id, const std::string& why) {
  auto [row, fresh] = unused_.try_emplace(why, 0, function_.instructions[id].range);
  ++row->second.first;
}

// Under the assumption that no index overflows, `sext(P1+1)` is `sext(P1)+1`: fewer instructions, and forms that
// differ only in where the extension stands become equal.
void Planner::pull_extensions_out(Site& site) {
  ir::ExpressionPool& pool = forms_.expressions();
  for (ExpressionId& coefficient : site.coefficients) {
    if (pool.literal_value(coefficient) || pool[coefficient].kind != ir::ExpressionKind::sum) continue;
    unsigned width = pool.width(coefficient);
    ExpressionId sum = pool.literal(width, static_cast<uint64_t>(pool[coefficient].offset));
    std::vector<ir::ExpressionTerm> terms(pool.terms(coefficient).begin(), pool.terms(coefficient).end());
    bool changed = false;
    for (const ir::ExpressionTerm& term : terms) {
      ExpressionId product = pool.literal(width, term.coefficient);
      std::vector<ExpressionId> factors(pool.factors(term.monomial).begin(), pool.factors(term.monomial).end());
      for (ExpressionId factor : factors) {
        ir::ExpressionKind kind = pool[factor].kind;
        bool extension = kind == ir::ExpressionKind::sign_extend || kind == ir::ExpressionKind::zero_extend;
        if (extension && pool[pool.operands(factor)[0]].kind == ir::ExpressionKind::sum) {
          auto moved = forms_.move_extension(factor, site.instruction);
          if (moved.expression.valid() && moved.obligation.valid()) {
            site.obligations.push_back(moved.obligation);
            factor = moved.expression;
            changed = true;
          }
        }
        product = pool.multiply(product, factor);
      }
      sum = pool.add(sum, product);
    }
    if (changed) coefficient = sum;
  }
}

bool Planner::usable(const LinearForm& form, ValueId value, Site& site) {
  const LinearForm& own = forms_.form(value);
  if (form.kind == ir::ValueClass::any || own.kind == ir::ValueClass::any) return false;
  auto refuse = [&](const std::string& why) {
    explain_unused(site.instruction, why);
    return false;
  };
  if (form.loop_count != 0 || own.loop_count != 0)
    return refuse("the form changes from trip to trip of a loop; the original instructions stay");
  if (form.kind == ir::ValueClass::divergent_linear || own.kind == ir::ValueClass::divergent_linear)
    return refuse("the register is written on several paths; the original instructions stay");
  if (!form.has_coefficients() || !own.has_coefficients() || form.varies || own.varies) return false;
  if (form.width != 32 && form.width != 64) return false;
  site.width = form.width;
  site.coefficients = form.coefficients;
  std::span<const ObligationId> obligations = forms_.obligations(value);
  site.obligations.assign(obligations.begin(), obligations.end());
  for (ObligationId id : site.obligations)
    if (!dischargeable(id)) return refuse("not used: nothing can show that " + forms_.obligation(id).statement);
  if (options_.assume_no_overflow) pull_extensions_out(site);
  for (ExpressionId coefficient : site.coefficients)
    if (!CoefficientWriter::expressible(forms_.expressions(), coefficient))
      return refuse("not used: a coefficient needs something that the coefficient section cannot compute (" +
                    forms_.expressions().print_short(coefficient, &function_) + ")");
  return true;
}

void Planner::find_address_sites() {
  for (BlockId block : function_.layout) {
    for (InstructionId id : function_.instructions_in(block)) {
      std::optional<size_t> address = rewritable_address(function_, id);
      if (!address) continue;
      const LinearForm& form = forms_.address_form(id, *address);
      ir::StateSpace space = function_.form_of(id).space;
      if (form.kind != ir::ValueClass::any && form.width == 32 && !is_small_space(space) &&
          function_.module().address_size != 32)
        continue;
      Site site;
      site.instruction = id;
      site.address = static_cast<uint32_t>(*address);
      if (!usable(form, function_.operands_of(id)[*address + 1].as_value(), site)) continue;
      site_of_[id.index()] = static_cast<uint32_t>(sites_.size());
      sites_.push_back(std::move(site));
    }
  }
}

void Planner::find_result_sites() {
  Liveliness::Result live = simulate();
  ReaderCounts counts(function_, forms_.def_use(), live,
                      [&](InstructionId id, size_t operand) { return replaced(id, operand); });
  // Readers first, so that a value is met when its own readers are settled.
  const std::vector<BlockId>& order = forms_.control_flow().reverse_postorder();
  for (auto block = order.rbegin(); block != order.rend(); ++block) {
    for (InstructionId id = function_.blocks[*block].last; id; id = function_.instructions[id].previous) {
      if (!live.needed(id) || site_of_[id.index()] != UINT32_MAX || !removable_when_unused(function_, id) ||
          function_.instructions[id].guard)
        continue;
      std::span<const Operand> operands = function_.operands_of(id);
      if (operands.size() < 2 || !operands[0].is(OperandKind::value) || operands[1].is_definition()) continue;
      ValueId result = operands[0].as_value();
      const ir::Value& value = function_.values[result];
      if (counts.readers(result) == 0 || value.vector_width != 1 || ir::is_float(value.type)) continue;
      const LinearForm& form = forms_.form(result);
      if (form.kind == ir::ValueClass::any || form.width != ir::bit_width(value.type)) continue;
      Site site;
      site.instruction = id;
      std::vector<ValueId> read;
      ir::for_each_use(function_, id, [&](ValueId operand) { read.push_back(operand); });
      if (counts.release(read, [&](InstructionId dead) { return weight(dead); }) <= 0 || !usable(form, result, site)) {
        counts.undo();
        continue;
      }
      site_of_[id.index()] = static_cast<uint32_t>(sites_.size());
      sites_.push_back(std::move(site));
    }
  }
}

void Planner::form_groups() {
  ir::ExpressionPool& pool = forms_.expressions();
  std::map<std::vector<uint32_t>, uint32_t> index;
  for (uint32_t i = 0; i < sites_.size(); ++i) {
    Site& site = sites_[i];
    std::vector<uint32_t> key{site.width};
    for (unsigned c = FormIndex::tid_x; c < FormIndex::count; ++c)
      key.push_back(site.coefficients[c].index());
    auto [row, fresh] = index.try_emplace(std::move(key), static_cast<uint32_t>(groups_.size()));
    if (fresh) {
      Group group;
      group.width = site.width;
      group.coefficients = site.coefficients;
      group.coefficients[FormIndex::constant] = split_constant(pool, site.coefficients[FormIndex::constant]).symbolic;
      groups_.push_back(std::move(group));
    }
    site.group = row->second;
    Group& group = groups_[site.group];
    group.sites.push_back(i);
    // The simplest constant makes the simplest differences.
    ExpressionId& base = group.coefficients[FormIndex::constant];
    ExpressionId candidate = split_constant(pool, site.coefficients[FormIndex::constant]).symbolic;
    if (pool.terms(candidate).size() < pool.terms(base).size()) base = candidate;
  }
  kept_.assign(groups_.size(), true);
}

Liveliness::Result Planner::simulate() const {
  return liveliness_.compute([&](InstructionId id, size_t operand) { return replaced(id, operand); });
}

bool Planner::replaced(InstructionId id, size_t operand) const {
  uint32_t index = site_of_[id.index()];
  if (index == UINT32_MAX || !takes_part(sites_[index])) return false;
  return sites_[index].address == Site::whole_result || operand == sites_[index].address + 1;
}

double Planner::removed_weight(const Liveliness::Result& live, size_t* count) const {
  double sum = 0;
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (live.needed(id)) continue;
      sum += weight(id);
      if (count) ++*count;
    }
  return sum;
}

// Each superfluous instruction's weight is shared among the groups whose sites used to need it. What very many need
// says nothing about any one of them and is not followed further, so that long chains cost no quadratic time.
void Planner::estimate_savings() {
  Liveliness::Result live = simulate();
  Liveliness::Result without = liveliness_.compute();
  constexpr size_t many = 64;
  std::vector<std::set<uint32_t>> readers(function_.instructions.size());
  const std::vector<BlockId>& order = forms_.control_flow().reverse_postorder();
  for (auto block = order.rbegin(); block != order.rend(); ++block) {
    for (InstructionId id = function_.blocks[*block].last; id; id = function_.instructions[id].previous) {
      uint32_t site = site_of_[id.index()];
      bool dead = !live.needed(id);
      if (dead && without.needed(id))
        for (uint32_t group : readers[id.index()])
          groups_[group].saving += weight(id) / static_cast<double>(readers[id.index()].size());
      std::set<uint32_t> passed_on;
      if (dead)
        passed_on = readers[id.index()];
      else if (site != UINT32_MAX)
        passed_on = {sites_[site].group};
      if (passed_on.empty() || passed_on.size() > many) continue;
      ir::for_each_use(function_, id, [&](ValueId value) {
        InstructionId definition = forms_.def_use().definition(value).instruction;
        if (definition) readers[definition.index()].insert(passed_on.begin(), passed_on.end());
      });
    }
  }
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
    form.coefficients = sites_[group.sites.front()].coefficients;
    context_.remarks.emplace_back("dropped " + forms_.print(form) + ": only " + std::to_string(options_.limit) +
                                      " linear registers, and it saves less than those kept",
                                  function_.instructions[sites_[group.sites.front()].instruction].range);
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
  double best = removed_weight(simulate());
  for (uint32_t g : order) {
    kept_[g] = false;
    if (removed_weight(simulate()) < best) kept_[g] = true;
  }
}

Plan Planner::run() {
  site_of_.assign(function_.instructions.size(), UINT32_MAX);
  find_address_sites();
  find_result_sites();
  form_groups();
  estimate_savings();
  apply_limit();
  drop_useless_groups();

  Plan plan;
  plan.dropped_by_limit = dropped_by_limit_;
  std::vector<uint32_t> new_group(groups_.size(), UINT32_MAX);
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (!kept_[i]) continue;
    new_group[i] = static_cast<uint32_t>(plan.groups.size());
    plan.groups.push_back(groups_[i]);
    plan.groups.back().sites.clear();
  }
  Liveliness::Result live = simulate();
  Liveliness::Result without = liveliness_.compute();
  plan.removed_weight = removed_weight(live, &plan.removed_instructions) - removed_weight(without);
  for (Site& site : sites_) {
    if (!kept_[site.group]) continue;
    site.group = new_group[site.group];
    plan.groups[site.group].sites.push_back(static_cast<uint32_t>(plan.sites.size()));
    plan.sites.push_back(std::move(site));
  }
  for (const auto& [why, where] : unused_)
    context_.remarks.emplace_back(
        why + (where.first > 1 ? " (" + std::to_string(where.first) + " places)" : std::string()), where.second);
  return plan;
}

} // namespace

bool Group::has_thread_part(const ir::ExpressionPool& pool) const {
  return !(pool.is_zero(coefficients[FormIndex::tid_x]) && pool.is_zero(coefficients[FormIndex::tid_y]) &&
           pool.is_zero(coefficients[FormIndex::tid_z]));
}

bool Group::has_block_indices(const ir::ExpressionPool& pool) const {
  return !(pool.is_zero(coefficients[FormIndex::ctaid_x]) && pool.is_zero(coefficients[FormIndex::ctaid_y]) &&
           pool.is_zero(coefficients[FormIndex::ctaid_z]));
}

SplitConstant split_constant(ir::ExpressionPool& pool, ExpressionId sum) {
  unsigned width = pool.width(sum);
  uint64_t literal = pool[sum].kind == ir::ExpressionKind::sum ? static_cast<uint64_t>(pool[sum].offset) : 0;
  return {pool.subtract(sum, pool.literal(width, literal)), ir::signed_value(literal, width)};
}

double execution_weight(const ir::LoopForest& loops, BlockId block) {
  return std::pow(10.0, std::min<uint32_t>(loops.depth(block), 6));
}

std::optional<size_t> rewritable_address(const ir::Function& function, InstructionId instruction) {
  if (function.instructions[instruction].kind != ir::InstructionKind::real) return std::nullopt;
  const ir::Form& form = function.form_of(instruction);
  switch (form.opcode) {
  case ir::Opcode::ld:
  case ir::Opcode::ldu:
  case ir::Opcode::st:
  case ir::Opcode::atom:
  case ir::Opcode::red:
    break;
  default:
    return std::nullopt;
  }
  if (form.opaque || ir::is_param(form.space)) return std::nullopt;
  std::span<const Operand> operands = function.operands_of(instruction);
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
    if (!operands[i].is(OperandKind::address)) continue;
    if (operands[i].group_size() != 1 || !operands[i + 1].is(OperandKind::value)) return std::nullopt;
    const ir::Value& base = function.values[operands[i + 1].as_value()];
    if (base.register_class != ir::RegisterClass::general || base.vector_width != 1 ||
        operands[i + 1].selector != ir::no_selector || operands[i].has(ir::OperandFlag::bracketed_index))
      return std::nullopt;
    return i;
  }
  return std::nullopt;
}

Plan make_plan(ir::LinearForms& forms, const PlanOptions& options, PassContext& context) {
  return Planner(forms, options, context).run();
}

} // namespace ptxrewrite::transforms::r2d2
