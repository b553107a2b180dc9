// Builds the dependence graph of a block, see dependences.h.
#include "ir/machine/registers/dependences.h"

#include "ir/core/special_registers.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ptxrewrite::ir {

namespace {

// How an instruction is ordered relative to others.
enum class Ordering : uint8_t {
  free,       // by its operands only
  load,       //
  store,      //
  memory,     // with all accesses of memory
  carry,      //
  convergent, //
  fence,      // with all instructions
};

Ordering ordering_of(const Function& function, InstructionId id) {
  if (function.instructions[id].kind != InstructionKind::real || reads_volatile_register(function, id))
    return Ordering::fence;
  const Form& form = function.form_of(id);
  const Effects& effects = form.effects;
  if (form.extension || effects.barrier || effects.transfers_control()) return Ordering::fence;
  switch (form.kind) {
  case InstructionClass::load:
  case InstructionClass::texture:
    return effects.volatile_result ? Ordering::memory : Ordering::load;
  case InstructionClass::store:
    return effects.volatile_result ? Ordering::memory : Ordering::store;
  case InstructionClass::atomic:
    return Ordering::memory;
  default:
    break;
  }
  Effects rest = effects;
  rest.convergent = rest.reads_carry = rest.writes_carry = false;
  if (!rest.pure()) return Ordering::fence;
  const bool carries = effects.reads_carry || effects.writes_carry;
  if (carries && effects.convergent) return Ordering::fence;
  if (carries) return Ordering::carry;
  return effects.convergent ? Ordering::convergent : Ordering::free;
}

// The memory that a load or store accesses, as far as its operands determine it.
struct Access {
  uint32_t node = 0;
  bool writes = false;
  StateSpace space = StateSpace::none;
  std::optional<Operand> base; // of the address; none: anywhere in the space
  int64_t begin = 0, end = 0;  // bytes from the base
};

Access access_of(const Function& function, InstructionId id, uint32_t node, bool writes) {
  const Form& form = function.form_of(id);
  Access access;
  access.node = node;
  access.writes = writes;
  access.space = form.space;
  std::span<const Operand> operands = function.operands_of(id);
  if (form.kind == InstructionClass::texture || form.types.empty()) return access;
  for (size_t i = 0; i + 1 < operands.size(); ++i) {
    if (!operands[i].is(OperandKind::address) || operands[i].group_size() != 1) continue;
    const Operand& base = operands[i + 1];
    if (!base.is(OperandKind::value) && !base.is(OperandKind::symbol)) return access;
    access.base = base;
    access.begin = operands[i].immediate + base.immediate;
    access.end = access.begin + int64_t(byte_width(form.types[0])) * form.vector_width;
    return access;
  }
  return access;
}

bool is_generic(StateSpace space) {
  return space == StateSpace::none || space == StateSpace::generic;
}

bool are_apart(StateSpace a, StateSpace b) {
  if (is_generic(a) || is_generic(b) || (is_shared(a) && is_shared(b)) || (is_param(a) && is_param(b))) return false;
  return a != b;
}

// In other spaces, other lanes of the warp may rely on the order, although that is a race.
bool is_private(StateSpace space) {
  return space == StateSpace::local || is_param(space);
}

bool may_overlap(const Access& a, const Access& b) {
  if (are_apart(a.space, b.space)) return false;
  if (!is_private(a.space) || !is_private(b.space)) return true;
  if (!a.base || !b.base || a.base->kind != b.base->kind || a.base->id != b.base->id) return true;
  return a.begin < b.end && b.begin < a.end;
}

class DependenceFinder {
public:
  DependenceFinder(const Function& function, const DefUse& def_use, const std::vector<uint32_t>& place, BlockId block)
      : function_(function), def_use_(def_use), place_(place), block_(block) {
    for (InstructionId id : function.instructions_in(block))
      graph_.instructions.push_back(id);
    graph_.predecessors.resize(graph_.instructions.size());
    graph_.successors.resize(graph_.instructions.size());
    known_by_.resize(graph_.instructions.size(), no_node);
  }

  BlockDependences run() {
    for (uint32_t node = 0; node < graph_.instructions.size(); ++node) {
      add_data(node);
      add_order(node);
      if (function_.instructions[graph_.instructions[node]].kind == InstructionKind::real) keep_names(node);
    }
    keep_parameters();
    return std::move(graph_);
  }

private:
  static constexpr uint32_t no_node = UINT32_MAX;
  // If a later access would be compared with more accesses than this, it is ordered after all of them.
  static constexpr size_t most_accesses = 256;

  // Called for data dependences first: a pair of nodes is listed once.
  void depend(uint32_t later, uint32_t earlier, bool data) {
    if (earlier == later || known_by_[earlier] == later) return;
    known_by_[earlier] = later;
    graph_.predecessors[later].push_back({earlier, data});
    graph_.successors[earlier].push_back({later, data});
  }
  uint32_t place_in_block(InstructionId id) const {
    return id && function_.instructions[id].block == block_ ? place_[id.index()] : no_node;
  }
  // Index of the instruction of this block that defines the value; no_node if it is elsewhere.
  uint32_t definition_of(ValueId value) const { return place_in_block(def_use_.definition(value).instruction); }
  void add_data(uint32_t node) {
    for_each_use(function_, graph_.instructions[node], [&](ValueId value) {
      if (uint32_t from = definition_of(value); from != no_node) depend(node, from, true);
    });
  }
  void order_behind(uint32_t node, std::optional<uint32_t> earlier) {
    if (earlier) depend(node, *earlier, false);
  }

  void add_order(uint32_t node) {
    const Ordering ordering = ordering_of(function_, graph_.instructions[node]);
    if (ordering == Ordering::fence) {
      for (uint32_t before = fence_ ? *fence_ : 0; before < node; ++before)
        depend(node, before, false);
      fence_ = node;
      memory_.reset();
      carry_.reset();
      convergent_.reset();
      accesses_.clear();
      return;
    }
    order_behind(node, fence_);
    if (ordering == Ordering::carry) order_behind(node, std::exchange(carry_, node));
    if (ordering == Ordering::convergent) order_behind(node, std::exchange(convergent_, node));
    if (ordering == Ordering::load || ordering == Ordering::store || ordering == Ordering::memory)
      order_access(node, ordering);
  }
  void order_access(uint32_t node, Ordering ordering) {
    order_behind(node, memory_);
    Access access = access_of(function_, graph_.instructions[node], node, ordering != Ordering::load);
    const bool with_all = ordering == Ordering::memory || accesses_.size() >= most_accesses;
    for (const Access& before : accesses_)
      if (with_all || ((before.writes || access.writes) && may_overlap(before, access)))
        depend(node, before.node, false);
    if (with_all) {
      accesses_.clear();
      memory_ = node;
    } else {
      accesses_.push_back(access);
    }
  }

  // Orders readers of the instruction's old values before it.
  void keep_names(uint32_t node) {
    for (const Operand& operand : function_.operands_of(graph_.instructions[node]))
      if (operand.has(OperandFlag::old_value) && operand.is(OperandKind::value))
        keep_readers_before(operand.as_value(), node);
  }
  void keep_readers_before(ValueId value, uint32_t node) {
    for (const Use& use : def_use_.uses(value)) {
      uint32_t reader = place_in_block(use.instruction);
      if (reader == no_node || reader >= node) continue;
      if (std::ranges::find(graph_.predecessors[node], reader, &Dependence::node) == graph_.predecessors[node].end()) {
        graph_.predecessors[node].push_back({reader, false});
        graph_.successors[reader].push_back({node, false});
      }
    }
  }
  // Orders readers of a block parameter before the instruction that computes its next value.
  void keep_parameters() {
    for (EdgeId edge : function_.successors(block_)) {
      std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
      for (size_t i = 0; i < parameters.size(); ++i) {
        uint32_t node = definition_of(function_.arguments(edge)[i]);
        if (node != no_node) keep_readers_before(parameters[i], node);
      }
    }
  }

  const Function& function_;
  const DefUse& def_use_;
  const std::vector<uint32_t>& place_;
  BlockId block_;
  BlockDependences graph_;
  std::vector<uint32_t> known_by_;                              // by node: the last node found to depend on it
  std::optional<uint32_t> fence_, memory_, carry_, convergent_; // the last instruction of each kind
  std::vector<Access> accesses_;                                // since `memory_`
};

} // namespace

Dependences::Dependences(const Function& function)
    : function_(function), def_use_(function), place_(function.instructions.size()) {
  for (BlockId block : function.layout) {
    uint32_t place = 0;
    for (InstructionId id : function.instructions_in(block))
      place_[id.index()] = place++;
  }
}

BlockDependences Dependences::of(BlockId block) const {
  return DependenceFinder(function_, def_use_, place_, block).run();
}

bool is_long_latency(const Form& form) {
  if (form.kind == InstructionClass::texture || form.kind == InstructionClass::surface) return true;
  bool memory = form.kind == InstructionClass::load || form.kind == InstructionClass::atomic;
  return memory && (form.space == StateSpace::global || form.space == StateSpace::none ||
                    form.space == StateSpace::generic || form.space == StateSpace::local);
}

} // namespace ptxrewrite::ir
