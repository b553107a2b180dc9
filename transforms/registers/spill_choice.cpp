// Costs of spilling, see spill_choice.h.
#include "transforms/registers/spill_choice.h"

#include "ir/core/special_registers.h"
#include "ir/machine/registers/allocation_bundles.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ptxrewrite::transforms {

using namespace ir;

namespace {

// By value: registers that wgmma.mma_async reads or writes until it is waited for, and all that share them by way of
// blocks' parameters. A load or a store of one of them could come between the product and its wait.
std::vector<bool> asynchronous_values(const Function& function, const MachineValues& values) {
  std::vector<bool> found(function.values.size());
  bool any = false;
  const auto add = [&](ValueId value) {
    if (bit_width(function.values[value].type) != 32) return; // descriptors and predicates are read at once
    found[value.index()] = true;
    any = true;
  };
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (!function.is_opcode(id, Opcode::wgmma)) continue;
      for_each_use(function, id, add);
      for_each_definition(function, id, add);
    }
  for (bool more = any; more;) {
    more = false;
    for (BlockId block : function.layout)
      for (EdgeId edge : function.successors(block)) {
        const std::span<const ValueId> arguments = function.arguments(edge);
        const auto& parameters = function.parameters(function.edges[edge].to);
        for (size_t i = 0; i < arguments.size(); ++i)
          for (ValueId part : values.stands_for(arguments[i])) {
            if (found[part.index()] == found[parameters[i].index()]) continue;
            found[part.index()] = found[parameters[i].index()] = true;
            more = true;
          }
      }
  }
  return found;
}

} // namespace

SpillChooser::SpillChooser(const Function& function, const MachineValues& values, const AllocationOptions& options,
                           const std::vector<bool>& unspillable)
    : function_(function), values_(values), flow_(function), dominators_(function, flow_),
      loops_(function, flow_, dominators_), def_use_(function), candidate_of_(function.values.size(), UINT32_MAX),
      asynchronous_(asynchronous_values(function, values)), read_points_(function.values.size()) {
  for (BlockId block : function.layout) {
    for (InstructionId id : function.instructions_in(block))
      for (ValueId value : values.reads(id))
        read_points_[value.index()].push_back(2 * values.index_of(id));
    for (EdgeId edge : function.successors(block))
      for (ValueId argument : function.arguments(edge))
        for (ValueId part : values.stands_for(argument))
          read_points_[part.index()].push_back(2 * values.end_of(block));
  }
  Bundles bundles(function, values, options);
  for (const Bundle& bundle : bundles.bundles()) {
    std::map<std::pair<uint32_t, unsigned>, uint32_t> by_place; // offset and width
    for (const Bundle::Member& member : bundle.members) {
      auto [place, fresh] =
          by_place.try_emplace({member.offset, values.units(member.value)}, static_cast<uint32_t>(candidates_.size()));
      if (fresh) candidates_.emplace_back();
      candidates_[place->second].web.values.push_back(member.value);
      candidate_of_[member.value.index()] = place->second;
    }
  }
  for (uint32_t i = 0; i < candidates_.size(); ++i) {
    weigh(candidates_[i], unspillable);
    if (!std::isinf(candidates_[i].cost)) by_price_.push_back(i);
  }
  std::ranges::stable_sort(by_price_, {}, [&](uint32_t i) { return candidates_[i].price(); });
}

namespace {

constexpr size_t most_webs = 64; // of a round

// A number for each program point, to which lists of ranges add one.
class PointCounts {
public:
  explicit PointCounts(uint32_t points) : sums_(points + 2) {}

  void add(std::span<const LiveRange> ranges) {
    for (const LiveRange& range : ranges) {
      change(range.begin, 1);
      change(range.end, -1);
    }
  }
  int at(uint32_t point) const {
    int sum = 0;
    for (size_t i = size_t(point) + 1; i > 0; i &= i - 1)
      sum += sums_[i];
    return sum;
  }

private:
  void change(uint32_t point, int by) {
    for (size_t i = size_t(point) + 1; i < sums_.size(); i += i & (~i + 1))
      sums_[i] += by;
  }

  std::vector<int> sums_; // a Fenwick tree of the changes from point to point
};

} // namespace

std::vector<SpillWeb> SpillChooser::choose(const std::vector<ValueId>& unplaced, bool many) const {
  struct Class {
    explicit Class(uint32_t points) : needed(points) {}
    PointCounts needed;
    std::vector<std::vector<LiveRange>> relieved; // where each chosen web is live
  };
  const uint32_t points = 2 * values_.index_count() + 2;
  Class classes[] = {Class(points), Class(points)}; // general registers, predicates
  std::vector<SpillWeb> chosen;
  std::vector<bool> taken(candidates_.size());
  for (ValueId value : unplaced) {
    const std::span<const LiveRange> ranges = values_.ranges(value);
    if (candidate_of_[value.index()] == UINT32_MAX || ranges.empty()) continue;
    Class& here = classes[values_.is_predicate(value) ? 1 : 0];
    here.needed.add(ranges);
    const auto helps = [&](const std::vector<LiveRange>& web) { return overlap(web, ranges); };
    const auto needed = many ? here.needed.at(ranges.front().begin) : 1;
    if (std::ranges::count_if(here.relieved, helps) >= needed) continue;
    const uint32_t best = cheapest(value, taken);
    if (best == UINT32_MAX) continue;
    taken[best] = true;
    std::vector<LiveRange>& covered = here.relieved.emplace_back();
    for (ValueId member : candidates_[best].web.values)
      merge_ranges(covered, values_.ranges(member));
    chosen.push_back(candidates_[best].web);
    if (chosen.size() == most_webs) break; // the next round sees what they achieve
  }
  return chosen;
}

uint32_t SpillChooser::cheapest(ValueId unplaced, const std::vector<bool>& taken) const {
  for (uint32_t i : by_price_) {
    const Candidate& candidate = candidates_[i];
    if (taken[i] || values_.is_predicate(candidate.web.values[0]) != values_.is_predicate(unplaced)) continue;
    if (std::ranges::any_of(candidate.web.values,
                            [&](ValueId member) { return overlap(values_.ranges(member), values_.ranges(unplaced)); }))
      return i;
  }
  return UINT32_MAX;
}

// Only the ratio between loop levels matters.
double SpillChooser::weight_at(BlockId block) const {
  return std::pow(8.0, std::min(loops_.depth(block), 6u));
}

void SpillChooser::weigh(Candidate& candidate, const std::vector<bool>& unspillable) {
  SpillWeb& web = candidate.web;
  bool can = true;
  for (ValueId value : web.values) {
    bool refused = value.index() < unspillable.size() && unspillable[value.index()];
    can &= !refused && is_spillable(value);
    for (const LiveRange& range : values_.ranges(value))
      candidate.length += static_cast<double>(range.end - range.begin) * values_.units(value);
    candidate.cost += accesses_of(value);
  }
  if (!can) {
    candidate.cost = INFINITY;
    return;
  }
  web.recompute = web.values.size() == 1 && can_recompute(web.values[0]);
  // A load has latency, an arithmetic instruction has little; a predicate must also be converted.
  if (web.recompute) candidate.cost *= 0.3;
  if (!web.recompute && values_.is_predicate(web.values[0])) candidate.cost *= 2;
}

bool SpillChooser::is_spillable(ValueId value) const {
  if (bit_width(function_.values[value].type) > 64 || asynchronous_[value.index()]) return false;
  const DefinitionSite& site = def_use_.definition(value);
  if (!site.instruction && !site.is_parameter()) return false;
  if (!site.is_parameter()) return true;
  // Stores on an edge use the condition of the branch; an indexed branch has none.
  return std::ranges::all_of(flow_.predecessors(site.block),
                             [&](EdgeId edge) { return function_.successors(function_.edges[edge].from).size() <= 2; });
}

double SpillChooser::accesses_of(ValueId value) const {
  const DefinitionSite& site = def_use_.definition(value);
  if (!site.instruction && !site.is_parameter()) return INFINITY;
  double sum = 0;
  if (!site.is_parameter()) sum += weight_at(site.block);
  if (site.is_parameter())
    for (EdgeId edge : flow_.predecessors(site.block))
      if (!in_same_web(function_.arguments(edge)[site.parameter], value)) sum += weight_at(function_.edges[edge].from);
  for (const Use& use : def_use_.uses(value)) {
    if (use.edge) {
      ValueId parameter = function_.parameters(function_.edges[use.edge].to)[use.index];
      if (!in_same_web(value, parameter)) sum += weight_at(function_.edges[use.edge].from);
    } else {
      sum += weight_at(function_.instructions[use.instruction].block);
    }
  }
  return sum;
}

bool SpillChooser::in_same_web(ValueId argument, ValueId parameter) const {
  std::span<const ValueId> parts = values_.stands_for(argument);
  return parts.size() == 1 && candidate_of_[parts[0].index()] == candidate_of_[parameter.index()];
}

// Is the value defined by one cheap instruction without effect, whose operands are live wherever the value is read?
bool SpillChooser::can_recompute(ValueId value) const {
  InstructionId id = def_use_.definition(value).instruction;
  if (!id || function_.instructions[id].guard || function_.instructions[id].kind != InstructionKind::real) return false;
  const Form& form = function_.form_of(id);
  bool parameter = form.opcode == Opcode::ld && is_param(form.space) && function_.is_entry;
  if (!parameter && !form.effects.pure()) return false;
  const InstructionCost& cost = values_.lowering().cost(id);
  // A value from outside the register file takes one move for each register.
  unsigned most = parameter || form.opcode == Opcode::mov || form.opcode == Opcode::cvta ? values_.units(value) : 1;
  if (cost.weight + cost.uniform > most) return false;
  unsigned definitions = 0;
  for (const Operand& operand : function_.operands_of(id))
    definitions += operand.is_definition() ? 1 : 0;
  return definitions == 1 && !reads_volatile_register(function_, id) &&
         std::ranges::all_of(read_points_[value.index()], [&](uint32_t point) { return at_hand(id, point); });
}

bool SpillChooser::at_hand(InstructionId definition, uint32_t point) const {
  bool all = true;
  for_each_use(function_, definition, [&](ValueId operand) {
    for (ValueId part : values_.stands_for(operand))
      all &= values_.live_at(part, point);
  });
  return all;
}

} // namespace ptxrewrite::transforms
