#include "ir/machine/prepare/needed.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// Lists by value, as chains through one array: most values are written once and take one entry.
template <class Item> class Chains {
public:
  explicit Chains(size_t values) : first_(values, none) {}
  void add(ValueId value, Item item) {
    entries_.push_back({item, first_[value.index()]});
    first_[value.index()] = static_cast<uint32_t>(entries_.size() - 1);
  }
  template <class Visit> void for_each(ValueId value, Visit&& visit) const {
    for (uint32_t at = first_[value.index()]; at != none; at = entries_[at].next)
      visit(entries_[at].item);
  }

private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Entry {
    Item item;
    uint32_t next;
  };
  std::vector<uint32_t> first_;
  std::vector<Entry> entries_;
};

} // namespace

// Marks all instructions on which instructions with effects, or control flow, depend.
std::vector<bool> needed_instructions(const Function& function, const ControlFlow& flow,
                                      const ValueDefinitions& definitions) {
  std::vector<bool> needed(function.instructions.size());
  Chains<InstructionId> writers(function.is_ssa ? 0 : function.values.size());
  Chains<ValueId> arguments(function.values.size()); // of block parameters
  std::vector<InstructionId> work;
  std::vector<bool> value_needed(function.values.size());
  std::vector<ValueId> value_work;
  auto need = [&](InstructionId id) {
    if (needed[id.index()]) return;
    needed[id.index()] = true;
    work.push_back(id);
  };
  for (BlockId block : function.layout) {
    if (!flow.reachable(block)) continue;
    for (EdgeId edge : function.successors(block)) {
      std::span<const ValueId> parameters = function.parameters(function.edges[edge].to);
      std::span<const ValueId> given = function.arguments(edge);
      for (size_t i = 0; i < std::min(parameters.size(), given.size()); ++i)
        arguments.add(parameters[i], given[i]);
    }
    for (InstructionId id : function.instructions_in(block)) {
      if (!function.is_ssa) for_each_definition(function, id, [&](ValueId value) { writers.add(value, id); });
      const Form* form = function.instructions[id].kind == InstructionKind::real ? &function.form_of(id) : nullptr;
      bool removable = form && (form->effects.pure() || (form->opcode == Opcode::ld && !form->effects.atomic &&
                                                         !form->effects.volatile_result));
      if (form && !removable) need(id);
    }
  }
  auto need_value = [&](ValueId value) {
    if (value_needed[value.index()]) return;
    value_needed[value.index()] = true;
    value_work.push_back(value);
  };
  while (!work.empty() || !value_work.empty()) {
    if (!value_work.empty()) {
      ValueId value = value_work.back();
      value_work.pop_back();
      if (!function.is_ssa)
        writers.for_each(value, need);
      else if (const InstructionId definition = definitions.definition(value))
        need(definition);
      arguments.for_each(value, need_value);
      continue;
    }
    InstructionId id = work.back();
    work.pop_back();
    for_each_use(function, id, need_value);
  }
  return needed;
}

} // namespace ptxrewrite::ir
