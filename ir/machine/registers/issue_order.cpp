// Looks at the loads and stores of blocks, see issue_order.h.
#include "ir/machine/registers/issue_order.h"

#include <algorithm>
#include <utility>

namespace ptxrewrite::ir {

namespace {

// Not of constant memory, whose words are operands, or take little time.
bool is_load(const Form& form) {
  return (form.kind == InstructionClass::load && form.space != StateSpace::constant) ||
         form.kind == InstructionClass::texture;
}

ValueId base_of(const Function& function, InstructionId access) {
  const auto operands = function.operands_of(access);
  for (size_t i = 0; i + 1 < operands.size(); ++i)
    if (operands[i].is(OperandKind::address))
      return operands[i + 1].is(OperandKind::value) ? operands[i + 1].as_value() : ValueId();
  return {};
}

// Stores before which a load is not issued: those to the memory that it reads, but not those whose addresses have the
// same base, which are taken to be at other places.
class LastStores {
public:
  void add(const Function& function, InstructionId store, size_t position) {
    const StateSpace space = function.form_of(store).space;
    for (Last* last : {&shared_, &local_, &others_})
      if (is_generic(space) || last == &place_of(space)) last->add({position, base_of(function, store)});
  }
  size_t before(const Function& function, InstructionId load) {
    const StateSpace space = function.form_of(load).space;
    const ValueId base = base_of(function, load);
    if (!is_generic(space)) return place_of(space).before(base);
    return std::max({shared_.before(base), local_.before(base), others_.before(base)});
  }

private:
  struct Store {
    size_t position = 0; // 1 + its position; 0: none
    ValueId base;
  };
  struct Last {
    Store last, of_other_base; // the last one, and the last one before it that has another base
    void add(const Store& store) {
      if (!store.base || store.base != last.base) of_other_base = last;
      last = store;
    }
    size_t before(ValueId base) const { return base && base == last.base ? of_other_base.position : last.position; }
  };

  static bool is_generic(StateSpace space) { return space == StateSpace::none || space == StateSpace::generic; }

  Last& place_of(StateSpace space) {
    return is_shared(space) ? shared_ : space == StateSpace::local ? local_ : others_;
  }

  Last shared_, local_, others_;
};

// The register that is the base of all stores outside shared memory; invalid if they have different ones.
struct StoredBase {
  bool any = false;
  ValueId base;
};

StoredBase base_of_stores(const Function& function, std::span<const BlockId> blocks) {
  StoredBase stored;
  for (BlockId block : blocks)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      const Form& form = function.form_of(id);
      if (form.kind != InstructionClass::store || is_shared(form.space)) continue;
      const ValueId base = base_of(function, id);
      stored.base = !stored.any || stored.base == base ? base : ValueId();
      stored.any = true;
    }
  return stored;
}

constexpr uint32_t outside = UINT32_MAX;

} // namespace

IssueOrder::IssueOrder(const Function& function, const Lowering& lowering, bool passes_stores)
    : function_(function), lowering_(lowering), passes_stores_(passes_stores),
      definition_(function.values.size(), outside) {}

std::vector<InstructionId> IssueOrder::of(BlockId block) {
  for (InstructionId id : function_.instructions_in(block)) {
    region_.push_back(id);
    if (is_fence(id)) flush();
  }
  flush();
  return std::exchange(order_, {});
}

bool IssueOrder::is_fence(InstructionId id) const {
  if (!is_real(id)) return true;
  const Form& form = function_.form_of(id);
  if (form.effects.atomic || form.effects.barrier || form.effects.transfers_control()) return true;
  return form.effects.writes_memory && !(passes_stores_ && form.kind == InstructionClass::store);
}

// True for a load of constant memory at an address that differs between lanes or trips, which waits as other loads do.
// In a loop that is copied the address is known in each copy, mostly.
bool IssueOrder::is_indexed_constant(InstructionId id) const {
  const Form& form = function_.form_of(id);
  return form.kind == InstructionClass::load && form.space == StateSpace::constant && lowering_.cost(id).weight > 0 &&
         lowering_.copies_of(function_.instructions[id].block) == 1;
}

void IssueOrder::flush() {
  std::vector<Place> places(region_.size());
  LastStores stores;
  for (size_t i = 0; i < region_.size(); ++i) {
    if (!is_real(region_[i])) continue;
    const Form& form = function_.form_of(region_[i]);
    if (is_load(form)) places[i] = {stores.before(function_, region_[i]), true};
    if (passes_stores_ && is_indexed_constant(region_[i])) places[i] = {0, true};
    if (form.kind == InstructionClass::store) stores.add(function_, region_[i], i + 1);
    for_each_use(function_, region_[i], [&](ValueId value) {
      const uint32_t from = definition_[value.index()];
      if (from != outside) places[i].released = std::max(places[i].released, places[from].released);
    });
    for_each_definition(function_, region_[i],
                        [&](ValueId value) { definition_[value.index()] = static_cast<uint32_t>(i); });
  }
  for (size_t i = region_.size(); i-- > 0;)
    if (places[i].early)
      for_each_use(function_, region_[i], [&](ValueId value) {
        if (definition_[value.index()] != outside) places[definition_[value.index()]].early = true;
      });
  append(places);
  for (InstructionId id : region_)
    for_each_definition(function_, id, [&](ValueId value) { definition_[value.index()] = outside; });
  region_.clear();
}

// Early instructions behind the store that releases them, others at their positions.
void IssueOrder::append(const std::vector<Place>& places) {
  std::vector<std::pair<size_t, uint32_t>> keys;
  for (uint32_t i = 0; i < places.size(); ++i)
    keys.emplace_back(places[i].early ? 2 * places[i].released : 2 * size_t{i} + 1, i);
  std::ranges::sort(keys);
  for (const auto& [key, i] : keys)
    order_.push_back(region_[i]);
}

uint32_t loaded_ahead(const Function& function, const Lowering& lowering, std::span<const BlockId> blocks,
                      uint32_t near_words, bool passes_stores) {
  const uint32_t further = lowering.copies_of(blocks.front()) - 1;
  uint32_t read_only = 0, shared = 0, others = 0;
  bool writes_shared = false, writes = false;
  const StoredBase stored = passes_stores ? base_of_stores(function, blocks) : StoredBase{};
  const auto add = [&](InstructionId id) {
    const Form& form = function.form_of(id);
    const bool passed = passes_stores && form.kind == InstructionClass::store && !is_shared(form.space);
    if (passed) return;
    if (form.effects.writes_memory || form.effects.atomic) (is_shared(form.space) ? writes_shared : writes) = true;
    writes_shared = writes_shared || form.effects.barrier;
    if (!is_load(form)) return;
    const bool never_written = form.has(Modifier::nc) || form.kind == InstructionClass::texture;
    uint32_t& units = never_written ? read_only : is_shared(form.space) ? shared : others;
    if (&units == &others && stored.any && (!stored.base || stored.base != base_of(function, id))) return;
    for_each_definition(function, id, [&](ValueId value) { units += lowering.register_units(value); });
  };
  for (BlockId block : blocks)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real) add(id);
  const uint32_t near = writes_shared ? 0 : std::min(further * shared, near_words - std::min(near_words, shared));
  return further * (read_only + (writes ? 0 : others)) + near;
}

} // namespace ptxrewrite::ir
