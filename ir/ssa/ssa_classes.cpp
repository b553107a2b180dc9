// Coalescing. The first steps save copies: they join guarded definitions with their old values, and block parameters
// with their arguments. All values connected in this way are tried as one class, which succeeds for code that
// transforms left in order and takes linear time; only components with interference are joined pair by pair, inner
// loops first. The last step saves register names: it joins classes that come from one register of the text.
#include "ir/ssa/ssa_classes.h"

#include "ir/flow/loops.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace ptxrewrite::ir {

RegisterClasses::RegisterClasses(const Function& function, LiveRanges& ranges)
    : function_(function), ranges_(ranges), members_(function.values.size()) {
  for (ValueId value : function.values.ids())
    parent_.push_back(value);
  tie_old_values();
  join_block_parameters();
  join_same_origin();
  for (ValueId value : function.values.ids())
    representative_.push_back(find(value));
  place_undefined();
}

bool RegisterClasses::same_kind(ValueId a, ValueId b) const {
  const Value &x = function_.values[a], &y = function_.values[b];
  return x.type == y.type && x.register_class == y.register_class && x.vector_width == y.vector_width;
}

ValueId RegisterClasses::find(ValueId value) {
  while (parent_[value.index()] != value) {
    ValueId& up = parent_[value.index()];
    up = parent_[up.index()];
    value = up;
  }
  return value;
}

void RegisterClasses::join(ValueId a, ValueId b, std::vector<ValueId> members) {
  // The lower handle remains: after construction it is the handle of the original register.
  if (b < a) std::swap(a, b);
  parent_[b.index()] = a;
  members_[b.index()] = {};
  members_[a.index()] = std::move(members);
}

bool RegisterClasses::try_join(ValueId a, ValueId b) {
  a = find(a);
  b = find(b);
  if (a == b) return true;
  if (!same_kind(a, b)) return false;
  auto members = [&](const ValueId& root) {
    const std::vector<ValueId>& list = members_[root.index()];
    return list.empty() ? std::span<const ValueId>(&root, 1) : std::span<const ValueId>(list);
  };
  std::span<const ValueId> x = members(a), y = members(b);
  std::vector<ValueId> merged(x.size() + y.size());
  std::merge(x.begin(), x.end(), y.begin(), y.end(), merged.begin(),
             [&](ValueId left, ValueId right) { return ranges_.before(left, right); });
  if (!ranges_.compatible(merged)) return false;
  join(a, b, std::move(merged));
  return true;
}

void RegisterClasses::tie_old_values() {
  for (BlockId block : ranges_.flow().reverse_postorder())
    for (InstructionId id : function_.instructions_in(block)) {
      if (!function_.keeps_old_values(id)) continue;
      std::span<const Operand> operands = function_.operands_of(id);
      size_t old = 0;
      while (old < operands.size() && !operands[old].has(OperandFlag::old_value))
        ++old;
      for (const Operand& operand : operands) {
        if (!operand.is(OperandKind::value) || !operand.is_definition() || old == operands.size()) continue;
        ValueId kept = operands[old++].as_value();
        if (!function_.values[kept].is_undefined) ties_.push_back({operand.as_value(), kept});
      }
    }
}

void RegisterClasses::join_block_parameters() {
  for (BlockId block : ranges_.flow().reverse_postorder()) {
    std::span<const ValueId> parameters = function_.parameters(block);
    if (parameters.empty()) continue;
    for (EdgeId edge : ranges_.flow().predecessors(block)) {
      std::span<const ValueId> arguments = function_.arguments(edge);
      for (size_t i = 0; i < parameters.size(); ++i)
        if (!function_.values[arguments[i]].is_undefined && same_kind(parameters[i], arguments[i]))
          links_.push_back({parameters[i], arguments[i], edge});
    }
  }
  join_whole_components();
  join_one_by_one();
}

void RegisterClasses::join_whole_components() {
  std::vector<ValueId> component;
  for (ValueId value : function_.values.ids())
    component.push_back(value);
  auto root = [&](ValueId value) {
    while (component[value.index()] != value) {
      component[value.index()] = component[component[value.index()].index()];
      value = component[value.index()];
    }
    return value;
  };
  auto connect = [&](ValueId a, ValueId b) {
    a = root(a);
    b = root(b);
    if (a != b) component[std::max(a, b).index()] = std::min(a, b);
  };
  for (auto [value, kept] : ties_)
    connect(value, kept);
  for (const Link& link : links_)
    connect(link.parameter, link.argument);

  std::vector<std::vector<ValueId>> lists(function_.values.size());
  for (ValueId value : function_.values.ids())
    if (ValueId top = root(value); top != value) lists[top.index()].push_back(value);
  for (ValueId top : function_.values.ids()) {
    std::vector<ValueId>& list = lists[top.index()];
    if (list.empty()) continue;
    list.push_back(top);
    std::sort(list.begin(), list.end(), [&](ValueId a, ValueId b) { return ranges_.before(a, b); });
    if (!ranges_.compatible(list)) continue;
    for (ValueId value : list)
      parent_[value.index()] = top;
    members_[top.index()] = std::move(list);
  }
}

void RegisterClasses::join_one_by_one() {
  for (auto [value, kept] : ties_) {
    [[maybe_unused]] bool joined = try_join(value, kept);
    assert(joined); // separate_old_values ensures it
  }
  std::erase_if(links_, [&](const Link& link) { return find(link.parameter) == find(link.argument); });
  if (links_.empty()) return;
  DominatorTree dominators(function_, ranges_.flow());
  LoopForest loops(function_, ranges_.flow(), dominators);
  auto depth = [&](const Link& link) {
    const Edge& edge = function_.edges[link.edge];
    return std::min(loops.depth(edge.from), loops.depth(edge.to));
  };
  std::stable_sort(links_.begin(), links_.end(), [&](const Link& a, const Link& b) { return depth(a) > depth(b); });
  for (const Link& link : links_)
    try_join(link.parameter, link.argument);
}

void RegisterClasses::join_same_origin() {
  // Roots by their name in the text, those of one name in ascending order.
  std::vector<std::pair<uint64_t, ValueId>> named;
  named.reserve(function_.values.size());
  for (ValueId value : function_.values.ids()) {
    if (find(value) != value || !ranges_.is_defined(value)) continue;
    const Value& row = function_.values[value];
    if (row.name) named.push_back({uint64_t{row.name.index()} << 32 | row.number, value});
  }
  std::ranges::sort(named);
  std::vector<ValueId> left, group;
  for (size_t begin = 0, end = 0; begin < named.size(); begin = end) {
    while (end < named.size() && named[end].first == named[begin].first)
      ++end;
    if (end == begin + 1) continue;
    left.clear();
    for (size_t i = begin; i < end; ++i)
      left.push_back(named[i].second);
    while (!left.empty()) {
      const ValueId first = left[0];
      const auto others = std::ranges::stable_partition(left, [&](ValueId one) { return same_kind(first, one); });
      group.assign(left.begin(), others.begin());
      left.erase(left.begin(), others.begin());
      if (group.size() > 1) join_group(group);
    }
  }
}

void RegisterClasses::join_group(std::span<const ValueId> roots) {
  std::vector<ValueId> all;
  for (ValueId root : roots) {
    const std::vector<ValueId>& members = members_[root.index()];
    if (members.empty())
      all.push_back(root);
    else
      all.insert(all.end(), members.begin(), members.end());
  }
  std::sort(all.begin(), all.end(), [&](ValueId a, ValueId b) { return ranges_.before(a, b); });
  if (ranges_.compatible(all)) {
    for (ValueId root : roots) {
      parent_[root.index()] = roots[0];
      members_[root.index()] = {};
    }
    members_[roots[0].index()] = std::move(all);
    return;
  }
  // The values interfere as one class. Pairwise joining costs the product of the sizes and only saves names.
  constexpr size_t limit = 1 << 20;
  if (roots.size() * all.size() > limit) return;
  for (size_t i = 1; i < roots.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (find(roots[k]) == roots[k] && try_join(roots[k], roots[i])) break;
}

// An undefined value has no live range, so any register of its kind fits: preferably the one with its
// name.
void RegisterClasses::place_undefined() {
  std::unordered_map<uint64_t, std::vector<ValueId>> by_name;
  auto key = [&](ValueId value) {
    const Value& row = function_.values[value];
    return uint64_t{row.name.index()} << 32 | row.number;
  };
  bool any = false;
  for (ValueId value : function_.values.ids())
    any |= function_.values[value].is_undefined;
  if (!any) return;
  for (ValueId value : function_.values.ids())
    if (representative(value) == value && ranges_.is_defined(value)) by_name[key(value)].push_back(value);
  for (ValueId value : function_.values.ids()) {
    if (!function_.values[value].is_undefined) continue;
    for (ValueId candidate : by_name[key(value)])
      if (same_kind(candidate, value)) {
        representative_[value.index()] = candidate;
        break;
      }
  }
}

} // namespace ptxrewrite::ir
