// Interference by dominance and liveness: see ssa_live_ranges.h.
#include "ir/ssa/ssa_live_ranges.h"

#include <algorithm>
#include <utility>

namespace ptxrewrite::ir {

namespace {

std::vector<bool> values_in_question(const Function& function) {
  std::vector<bool> result(function.values.size(), false);
  auto add = [&](ValueId value) { result[value.index()] = true; };
  for (BlockId block : function.layout) {
    for (ValueId value : function.parameters(block))
      add(value);
    for (EdgeId edge : function.successors(block))
      for (ValueId value : function.arguments(edge))
        add(value);
    for (InstructionId id : function.instructions_in(block)) {
      if (!function.keeps_old_values(id)) continue;
      for (const Operand& operand : function.operands_of(id))
        if (operand.is(OperandKind::value) && (operand.is_definition() || operand.has(OperandFlag::old_value)))
          add(operand.as_value());
    }
  }
  std::vector<std::pair<uint64_t, ValueId>> named;
  named.reserve(function.values.size());
  for (ValueId value : function.values.ids()) {
    const Value& row = function.values[value];
    if (row.name && !row.is_undefined) named.push_back({uint64_t{row.name.index()} << 32 | row.number, value});
  }
  std::ranges::sort(named);
  for (size_t i = 1; i < named.size(); ++i)
    if (named[i - 1].first == named[i].first) {
      add(named[i - 1].second);
      add(named[i].second);
    }
  return result;
}

} // namespace

LiveRanges::LiveRanges(const Function& function)
    : flow_(function), dominators_(function, flow_), in_question_(values_in_question(function)),
      liveness_(function, flow_, &in_question_), places_(function.values.size()) {
  struct Entry {
    ValueId value;
    LastUse use;
  };
  std::vector<Entry> entries;
  std::vector<uint32_t> slot(function.values.size(), UINT32_MAX);
  // Visiting blocks in ascending order sorts the entries of each value.
  for (BlockId block : function.blocks.ids()) {
    if (!function.blocks[block].in_layout || !flow_.reachable(block)) continue;
    uint32_t preorder = dominators_.preorder(block);
    for (ValueId value : function.parameters(block))
      places_[value.index()] = {block, preorder, 0};
    uint32_t index = 0;
    for (InstructionId id : function.instructions_in(block)) {
      ++index;
      for_each_use(function, id, [&](ValueId value) {
        if (!in_question_[value.index()]) return;
        uint32_t& entry = slot[value.index()];
        if (entry == UINT32_MAX || entries[entry].use.block != block) {
          entry = static_cast<uint32_t>(entries.size());
          entries.push_back({value, {block, 0}});
        }
        entries[entry].use.index = index;
      });
      for_each_definition(function, id, [&](ValueId value) { places_[value.index()] = {block, preorder, index}; });
    }
  }
  last_use_start_.assign(function.values.size() + 1, 0);
  for (const Entry& entry : entries)
    ++last_use_start_[entry.value.index() + 1];
  for (size_t i = 0; i + 1 < last_use_start_.size(); ++i)
    last_use_start_[i + 1] += last_use_start_[i];
  last_uses_.resize(entries.size());
  std::vector<uint32_t> next(last_use_start_.begin(), last_use_start_.end() - 1);
  for (const Entry& entry : entries)
    last_uses_[next[entry.value.index()]++] = entry.use;
}

bool LiveRanges::before(ValueId a, ValueId b) const {
  const Place &x = places_[a.index()], &y = places_[b.index()];
  if (x.preorder != y.preorder) return x.preorder < y.preorder;
  if (x.index != y.index) return x.index < y.index;
  return a < b;
}

bool LiveRanges::dominates(ValueId a, ValueId b) const {
  const Place &x = places_[a.index()], &y = places_[b.index()];
  return x.block == y.block ? x.index <= y.index : dominators_.dominates(x.block, y.block);
}

bool LiveRanges::live_behind(ValueId value, ValueId other) const {
  assert(in_question_[value.index()]);
  const Place& place = places_[other.index()];
  if (liveness_.is_live_out(place.block, value)) return true;
  auto begin = last_uses_.begin() + last_use_start_[value.index()];
  auto end = last_uses_.begin() + last_use_start_[value.index() + 1];
  auto use = std::lower_bound(begin, end, place.block,
                              [](const LastUse& entry, BlockId block) { return entry.block < block; });
  return use != end && use->block == place.block && use->index > place.index;
}

bool LiveRanges::interfere(ValueId a, ValueId b) const {
  const Place &x = places_[a.index()], &y = places_[b.index()];
  if (x.block == y.block && x.index == y.index) return true;
  if (dominates(a, b)) return live_behind(a, b);
  return dominates(b, a) && live_behind(b, a);
}

bool LiveRanges::compatible(std::span<const ValueId> sorted) {
  stack_.clear();
  for (ValueId value : sorted) {
    while (!stack_.empty() && !dominates(stack_.back(), value))
      stack_.pop_back();
    if (!stack_.empty() && interfere(stack_.back(), value)) return false;
    stack_.push_back(value);
  }
  return true;
}

} // namespace ptxrewrite::ir
