// Determined by assembling two stores to one address with other instructions between them: see overwritten_stores.h.
#include "ir/machine/prepare/overwritten_stores.h"

#include "ir/machine/prepare/sections.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::ir {

namespace {

// The last store to each memory that nothing has read since.
class UnreadStores {
public:
  explicit UnreadStores(const Function& function) : function_(function) {}

  void forget() { last_ = {}; }

  // Returns the store that this instruction overwrites; invalid if there is none.
  InstructionId visit(InstructionId id) {
    if (function_.instructions[id].kind != InstructionKind::real) return {};
    const Form& form = function_.form_of(id);
    const bool access = form.kind == InstructionClass::load || form.kind == InstructionClass::store;
    if (access && (form.space == StateSpace::constant || is_param(form.space) || form.has(Modifier::nc))) return {};
    InstructionId* last = access ? memory(form.space) : nullptr;
    if (!last) {
      const Effects& effects = form.effects;
      if (effects.reads_memory || effects.writes_memory || effects.barrier || effects.call) forget();
      return {};
    }
    const InstructionId before = *last;
    *last = is_plain_store(id) ? id : InstructionId();
    return before && *last && is_same_place(before, id) ? before : InstructionId();
  }

  // Forgets stores to addresses that the block computes.
  void forget_computed_in(BlockId block) {
    for (InstructionId& store : last_) {
      if (!store) continue;
      const Operand& base = address_of(store)[1];
      if (base.is(OperandKind::value) && is_computed_in(block, base.as_value())) store = {};
    }
  }

private:
  // nullptr for generic addresses and memories that are not told apart.
  InstructionId* memory(StateSpace space) {
    if (is_shared(space)) return last_.data();
    if (space == StateSpace::local) return &last_[1];
    return space == StateSpace::global ? &last_[2] : nullptr;
  }

  bool is_plain_store(InstructionId id) const {
    const Form& form = function_.form_of(id);
    return form.opcode == Opcode::st && !function_.instructions[id].guard && !form.effects.atomic &&
           !form.effects.volatile_result && address_of(id);
  }

  // The address operand, which the operand of its base follows; nullptr if there is none, or if it has several parts.
  const Operand* address_of(InstructionId id) const {
    for (const Operand& operand : function_.operands_of(id))
      if (operand.is(OperandKind::address)) return operand.group_size() == 1 ? &operand : nullptr;
    return nullptr;
  }

  bool is_computed_in(BlockId block, ValueId value) const {
    if (std::ranges::find(function_.parameters(block), value) != function_.parameters(block).end()) return true;
    bool found = false;
    for (InstructionId id : function_.instructions_in(block))
      for_each_definition(function_, id, [&](ValueId defined) { found |= defined == value; });
    return found;
  }

  bool is_same_place(InstructionId a, InstructionId b) const {
    const Form &first = function_.form_of(a), &second = function_.form_of(b);
    if (first.space != second.space ||
        byte_width(first.type()) * first.vector_width != byte_width(second.type()) * second.vector_width)
      return false;
    const Operand *one = address_of(a), *other = address_of(b);
    return one->immediate == other->immediate && one[1].kind == other[1].kind && one[1].id == other[1].id &&
           one[1].immediate == other[1].immediate;
  }

  const Function& function_;
  std::array<InstructionId, 3> last_ = {}; // by memory
};

} // namespace

bool drop_overwritten_stores(Function& function) {
  const std::vector<bool> in_section = instructions_in_sections(function);
  UnreadStores unread(function);
  std::vector<InstructionId> dropped;
  for (BlockId block : function.layout) {
    unread.forget();
    for (InstructionId id : function.instructions_in(block)) {
      if (is_marked(in_section, id))
        unread.forget();
      else if (const InstructionId store = unread.visit(id))
        dropped.push_back(store);
    }
  }
  for (InstructionId store : dropped)
    function.remove(store);
  return !dropped.empty();
}

std::vector<InstructionId> stores_overwritten_by_next_trip(const Function& function, BlockId loop) {
  UnreadStores unread(function);
  for (InstructionId id : function.instructions_in(loop))
    unread.visit(id);
  unread.forget_computed_in(loop);
  std::vector<InstructionId> stores;
  for (InstructionId id : function.instructions_in(loop))
    if (const InstructionId store = unread.visit(id)) stores.push_back(store);
  return stores;
}

} // namespace ptxrewrite::ir
