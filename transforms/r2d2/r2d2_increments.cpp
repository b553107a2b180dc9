// Offsets that change from trip to trip (paper §3.1.2): the kernel's own counters if they advance by the same steps, or
// new registers that are incremented once per trip, if that takes fewer instructions than advancing the addresses
// themselves.
#include "transforms/r2d2/r2d2_increments.h"

#include "ir/core/builder.h"
#include "transforms/r2d2/r2d2_planner.h"
#include "transforms/r2d2/r2d2_sections.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

namespace ptxrewrite::transforms::r2d2 {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::LinearForm;
using ir::LoopId;
using ir::Operand;
using ir::ValueId;
namespace form_index = ir::form_index;

Planner::ChainKey Planner::key_of(unsigned width, std::span<const ir::LoopOffset> chain) {
  ChainKey key{width};
  for (const ir::LoopOffset& offset : chain) {
    key.push_back(offset.loop.index());
    key.push_back(offset.step.index());
  }
  return key;
}

// --- counters of the kernel ---

// Finds registers that differ only by trip, not by thread, and that the kernel needs for more than addresses.
void Planner::find_counters() {
  if (std::exchange(counters_known_, true)) return;
  ir::Liveliness::Result live = simulate();
  for (BlockId block : forms_.control_flow().reverse_postorder()) {
    auto consider = [&](ValueId value) {
      const ir::Value& row = function_.values[value];
      const LinearForm& form = forms_.form(value);
      if (!live.read(value) || row.register_class != ir::RegisterClass::general || row.vector_width != 1 ||
          ir::is_float(row.type) || form.loop_count == 0 || !form.has_coefficients() || form.varies ||
          form.width != ir::bit_width(row.type) || (form.width != 32 && form.width != 64))
        return;
      for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
        if (!forms_.expressions().is_zero(form.coefficients[place])) return;
      if (!CoefficientWriter::expressible(forms_.expressions(), form.coefficients[form_index::constant])) return;
      for (ir::ObligationId id : forms_.obligations(value))
        if (!dischargeable(id)) return;
      std::vector<ir::LoopOffset> chain(form.loops().begin(), form.loops().end());
      std::ranges::sort(chain, {}, [&](const ir::LoopOffset& o) { return forms_.loops().loops()[o.loop].depth; });
      counters_[key_of(form.width, chain)].push_back(value);
    };
    for (ValueId parameter : function_.parameters(block))
      consider(parameter);
    for (InstructionId id : function_.instructions_in(block))
      if (function_.instructions[id].kind == ir::InstructionKind::real)
        ir::for_each_definition(function_, id, consider);
  }
}

bool Planner::runs_before(InstructionId first, InstructionId second, BlockId without) const {
  BlockId start = function_.instructions[first].block, target = function_.instructions[second].block;
  if (start == target && order_[first.index()] < order_[second.index()]) return true;
  if (target == without) return false;
  // Backwards: if `without` is the header of a loop around the target, the search stays inside the loop.
  std::unordered_set<BlockId> visited;
  std::vector<BlockId> work{target};
  while (!work.empty()) {
    BlockId block = work.back();
    work.pop_back();
    for (EdgeId edge : forms_.control_flow().predecessors(block)) {
      BlockId from = function_.edges[edge].from;
      if (from == start) return true;
      if (from != without && visited.insert(from).second) work.push_back(from);
    }
  }
  return false;
}

// Does the counter hold the value of the current trip there, and would reading it extend no live range? A block
// parameter is dead once its next value is computed.
bool Planner::is_counter_at(ValueId counter, InstructionId place) const {
  const ir::DefinitionSite& site = forms_.def_use().definition(counter);
  BlockId block = function_.instructions[place].block;
  if (!site.is_parameter()) {
    InstructionId definition = site.instruction;
    if (!definition || function_.instructions[definition].guard) return false;
    BlockId above = function_.instructions[definition].block;
    return above == block ? order_[definition.index()] < order_[place.index()]
                          : forms_.dominators().dominates(above, block);
  }
  if (!forms_.dominators().dominates(site.block, block)) return false;
  for (EdgeId edge : forms_.control_flow().predecessors(site.block)) {
    if (!forms_.dominators().dominates(site.block, function_.edges[edge].from)) continue;
    InstructionId next = forms_.def_use().definition(function_.arguments(edge)[site.parameter]).instruction;
    if (next && runs_before(next, place, site.block)) return false;
  }
  return true;
}

bool Planner::choose_counter(LinearSite& site) {
  auto found = counters_.find(key_of(site.width, site.offsets));
  if (found == counters_.end()) return false;
  ir::ExpressionPool& pool = forms_.expressions();
  for (ValueId counter : found->second) {
    if (!is_counter_at(counter, site.instruction)) continue;
    site.counter = counter;
    ir::ExpressionId& constant = site.coefficients[form_index::constant];
    constant = pool.subtract(constant, forms_.form(counter).coefficients[form_index::constant]);
    std::span<const ir::ObligationId> obligations = forms_.obligations(counter);
    site.obligations.insert(site.obligations.end(), obligations.begin(), obligations.end());
    return true;
  }
  return false;
}

// --- new registers ---

uint32_t Planner::increment_for(unsigned width, std::span<const ir::LoopOffset> chain) {
  auto [row, fresh] = increment_of_.try_emplace(key_of(width, chain), none);
  if (!fresh) return row->second;
  Increment increment;
  increment.width = static_cast<uint8_t>(width);
  increment.chain.assign(chain.begin(), chain.end());
  if (chain.size() > 1) increment.parent = increment_for(width, chain.first(chain.size() - 1));
  auto index = static_cast<uint32_t>(increments_.size());
  increments_.push_back(std::move(increment));
  enabled_.push_back(true);
  increment_of_[key_of(width, chain)] = index;
  return index;
}

void Planner::choose_offsets_of_addresses() {
  if (std::ranges::none_of(sites_, [](const LinearSite& site) { return site.moves(); })) return;
  find_counters();
  for (LinearSite& site : sites_)
    if (site.moves() && !choose_counter(site)) site.increment = increment_for(site.width, site.offsets);
}

bool Planner::choose_offset_of_result(LinearSite& site, const std::vector<bool>& used) {
  find_counters();
  if (choose_counter(site)) return true;
  auto found = increment_of_.find(key_of(site.width, site.offsets));
  if (found == increment_of_.end() || !used[found->second]) return false;
  site.increment = found->second;
  return true;
}

std::vector<bool> Planner::used_increments() const {
  std::vector<bool> used(increments_.size());
  for (const LinearSite& site : sites_)
    if (site.increment != none && takes_part(site))
      for (uint32_t i = site.increment; i != none; i = increments_[i].parent)
        used[i] = true;
  return used;
}

// Dynamic instructions that set the register before its loop and advance it in the loop.
double Planner::increment_weight(const Increment& increment, LoopId inside) const {
  const ir::LoopForest& loops = forms_.loops();
  const LoopId loop = increment.chain.back().loop;
  const bool one = increment.width == 32 || wide_product(forms_.expressions(), increment.chain.back().step);
  const std::string_view addition = one ? "add.s32" : "add.s64";
  double sum = 0;
  for (EdgeId edge : forms_.control_flow().predecessors(loops.loops()[loop].header)) {
    const BlockId from = function_.edges[edge].from;
    if (!inside || loops.contains(inside, from))
      sum += weight_of(loops.contains(loop, from) ? addition : "mov.b32", from);
  }
  return sum;
}

double Planner::added_weight(LoopId inside) const {
  double sum = added_by_joins(inside);
  std::vector<bool> used = used_increments();
  for (size_t i = 0; i < increments_.size(); ++i)
    if (used[i]) sum += increment_weight(increments_[i], inside);
  for (const LinearSite& site : sites_) {
    if (site.address != LinearSite::whole_result || !takes_part(site)) continue;
    const BlockId block = function_.instructions[site.instruction].block;
    if (!inside || forms_.loops().contains(inside, block)) sum += replacement_weight(site);
  }
  return sum;
}

namespace {

// Liveness that grows when further operands are read, and shrinks again if that is undone.
class GrowingLiveness {
public:
  GrowingLiveness(const ir::LinearForms& forms, ir::Liveliness::Result live)
      : function_(forms.function()), forms_(forms), live_(std::move(live)) {}

  bool needed(InstructionId id) const { return live_.needed(id); }

  // Reads the values, and all that they depend on. `ignored`: operands that are not read.
  template <class Ignored> void read(std::vector<ValueId> values, Ignored&& ignored) {
    while (!values.empty()) {
      const ValueId value = values.back();
      values.pop_back();
      if (live_.read(value)) continue;
      live_.values[value.index()] = true;
      values_.push_back(value);
      const ir::DefinitionSite& site = forms_.def_use().definition(value);
      if (site.is_parameter()) {
        for (EdgeId edge : forms_.control_flow().predecessors(site.block))
          if (site.parameter < function_.edges[edge].arguments.count)
            values.push_back(function_.arguments(edge)[site.parameter]);
        continue;
      }
      const InstructionId id = site.instruction;
      if (!id || live_.needed(id)) continue;
      live_.instructions[id.index()] = true;
      instructions_.push_back(id);
      const std::span<const Operand> operands = function_.operands_of(id);
      for (size_t i = 0; i < operands.size(); ++i)
        if (operands[i].is(ir::OperandKind::value) && !operands[i].is_definition() && !ignored(id, i))
          values.push_back(operands[i].as_value());
      if (ValueId guard = function_.instructions[id].guard) values.push_back(guard);
    }
  }

  void restart(ir::Liveliness::Result live) {
    live_ = std::move(live);
    keep();
  }
  // Instructions needed since the last keep() or undo().
  const std::vector<InstructionId>& grown() const { return instructions_; }
  void keep() {
    instructions_.clear();
    values_.clear();
  }
  void undo() {
    for (InstructionId id : instructions_)
      live_.instructions[id.index()] = false;
    for (ValueId value : values_)
      live_.values[value.index()] = false;
    keep();
  }

private:
  const ir::Function& function_;
  const ir::LinearForms& forms_;
  ir::Liveliness::Result live_;
  std::vector<InstructionId> instructions_;
  std::vector<ValueId> values_;
};

} // namespace

// Removes increments that cost more than they save, as seen from inside the loops: the first value of an address is
// available in a linear register in any case. On a tie, the register shared by all threads is kept (paper §3.1.2): it
// frees a register in each thread.
//
// Each one is weighed by the difference that it makes: the instructions that its sites need again without it, and the
// registers that nothing else uses. Sites of joins also read a predicate and are weighed as a whole.
void Planner::drop_useless_increments() {
  std::vector<std::vector<const LinearSite*>> sites(increments_.size());
  for (const LinearSite& site : sites_)
    if (site.increment != none) sites[site.increment].push_back(&site);
  std::vector<uint32_t> order(increments_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](uint32_t i) { return sites[i].size(); });
  const auto ignored = [&](InstructionId id, size_t operand) { return replaced(id, operand); };
  GrowingLiveness live(forms_, simulate());
  // By increment: participating sites and used increments that start from it.
  std::vector<size_t> users(increments_.size());
  const std::vector<bool> used = used_increments();
  for (uint32_t i = 0; i < increments_.size(); ++i) {
    users[i] += sites[i].size();
    if (used[i] && increments_[i].parent != none) ++users[increments_[i].parent];
  }
  for (uint32_t i : order) {
    if (sites[i].empty()) continue;
    const LoopId outermost = increments_[i].chain.front().loop;
    const bool plain = std::ranges::all_of(sites[i], [](const LinearSite* site) {
      return site->join == none && !site->counter && site->address != LinearSite::whole_result;
    });
    if (!plain) {
      const double with = gain(outermost);
      enabled_[i] = false;
      if (gain(outermost) <= with)
        enabled_[i] = true;
      else
        live.restart(simulate());
    } else {
      enabled_[i] = false;
      std::vector<ValueId> read;
      for (const LinearSite* site : sites[i])
        if (live.needed(site->instruction)) {
          const Operand& operand = function_.operands_of(site->instruction)[site->address + 1];
          if (operand.is(ir::OperandKind::value)) read.push_back(operand.as_value());
        }
      live.read(std::move(read), ignored);
      double lost = 0, saved = 0;
      for (InstructionId id : live.grown())
        if (forms_.loops().contains(outermost, function_.instructions[id].block)) lost += weight(id);
      // The chain of registers that only this one uses.
      for (uint32_t one = i; one != none && users[one] == (one == i ? sites[i].size() : 1);
           one = increments_[one].parent)
        saved += increment_weight(increments_[one], outermost);
      if (lost >= saved) {
        enabled_[i] = true;
        live.undo();
      } else {
        live.keep();
      }
    }
    if (enabled_[i]) continue;
    users[i] -= sites[i].size();
    for (uint32_t one = i; one != none && users[one] == 0; one = increments_[one].parent)
      if (const uint32_t parent = increments_[one].parent; parent != none) --users[parent];
  }
  for (const LinearSite& site : sites_)
    if (site.increment != none && !enabled_[site.increment])
      explain_unused(site.instruction, "counting its steps would save nothing; the original instructions stay");
}

// --- code ---

namespace {

// A builder that inserts before the branch that ends a block.
ir::Builder at_end_of(ir::Function& function, BlockId block) {
  ir::Builder builder(function);
  if (InstructionId terminator = function.terminator(block))
    builder.before(terminator);
  else
    builder.at_end(block);
  return builder;
}

Operand step_of(ir::Builder& builder, const Step& step) {
  if (!step.wide) return step.value;
  std::string_view mnemonic = step.wide->is_signed ? "mul.wide.s32" : "mul.wide.u32";
  return Operand::value(
      builder.emit_value(mnemonic, ir::ScalarType::b64, {step.value, Operand::integer(step.wide->literal)}, "%rd"));
}

} // namespace

std::vector<ValueId> emit_increments(ir::Function& function, const ir::LinearForms& forms, const Plan& plan,
                                     std::span<const Step> steps) {
  std::vector<ValueId> registers;
  for (size_t i = 0; i < plan.increments.size(); ++i) {
    const Increment& increment = plan.increments[i];
    const ir::Loop& loop = forms.loops().loops()[increment.chain.back().loop];
    ir::ScalarType type = increment.width == 64 ? ir::ScalarType::b64 : ir::ScalarType::b32;
    std::string_view hint = increment.width == 64 ? "%rd" : "%r";
    std::string width = std::to_string(increment.width);
    ValueId running = ir::Builder(function).new_value(type, hint);
    std::vector<ValueId> parameters(function.parameters(loop.header).begin(), function.parameters(loop.header).end());
    parameters.push_back(running);
    function.set_parameters(loop.header, parameters);
    for (EdgeId edge : forms.control_flow().predecessors(loop.header)) {
      BlockId from = function.edges[edge].from;
      ir::Builder builder = at_end_of(function, from);
      ValueId argument;
      if (forms.loops().contains(increment.chain.back().loop, from))
        argument =
            builder.emit_value("add.s" + width, type, {Operand::value(running), step_of(builder, steps[i])}, hint);
      else if (increment.parent != none)
        argument = registers[increment.parent];
      else
        argument = builder.emit_value("mov.b" + width, type, {Operand::integer(0)}, hint);
      std::vector<ValueId> arguments(function.arguments(edge).begin(), function.arguments(edge).end());
      arguments.push_back(argument);
      function.set_arguments(edge, arguments);
    }
    registers.push_back(running);
  }
  return registers;
}

} // namespace ptxrewrite::transforms::r2d2
