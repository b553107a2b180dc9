// Determined by assembling a store after each kind of comparison and branch; see equalities.h.
#include "ir/machine/prepare/equalities.h"

#include "ir/core/insertion.h"
#include "ir/flow/def_use.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

namespace {

struct Equality {
  ValueId value;
  int64_t literal = 0;
};

// A program point: the rest of the block and all blocks that it dominates.
struct Place {
  BlockId block;
  InstructionId behind; // invalid: from the start of the block
};

// setp.ne of a 32-bit integer and a literal.
bool compares_with_literal(const Function& function, InstructionId id) {
  if (!function.is_opcode(id, Opcode::setp) || function.instructions[id].guard) return false;
  const Form& compare = function.form_of(id);
  const std::span<const Operand> operands = function.operands_of(id);
  return compare.has(Modifier::ne) && bit_width(compare.type()) == 32 && !is_float(compare.type()) &&
         operands.size() == 3 && operands[1].is(OperandKind::value) && operands[2].is(OperandKind::integer);
}

struct Found {
  Equality equality;
  Place place;
  uint32_t next = UINT32_MAX; // of the same value
};

// Equalities of a function and the points where they hold, in reverse postorder.
class EqualityFinder {
public:
  EqualityFinder(const Function& function, const ControlFlow& flow, const DominatorTree& dominators)
      : function_(function), flow_(flow), dominators_(dominators) {
    if (!find_tests()) return;
    for (BlockId block : flow_.reverse_postorder())
      for (InstructionId id : function_.instructions_in(block))
        if (std::optional<Equality> equality = if_not_guarded(id))
          if (std::optional<Place> place = where_not_taken(block, id)) found_.push_back({*equality, *place});
  }

  std::span<const Found> found() const { return found_; }

  bool holds_for(const Place& place, const Use& use) const {
    return use.edge ? dominators_.dominates(place.block, function_.edges[use.edge].from)
                    : use.index != Use::guard_index && is_behind(place, use.instruction);
  }

  // Is a value read where it equals a literal?
  bool any_use() {
    if (found_.empty()) return false;
    std::vector<uint32_t> first(function_.values.size(), UINT32_MAX);
    for (uint32_t i = 0; i < found_.size(); ++i)
      found_[i].next = std::exchange(first[found_[i].equality.value.index()], i);
    const auto holds = [&](ValueId value, const Use& use) {
      for (uint32_t i = first[value.index()]; i != UINT32_MAX; i = found_[i].next)
        if (holds_for(found_[i].place, use)) return true;
      return false;
    };
    for (BlockId block : function_.layout) {
      for (InstructionId id : function_.instructions_in(block))
        for (const Operand& operand : function_.operands_of(id))
          if (operand.is(OperandKind::value) && !operand.is_definition() && holds(operand.as_value(), {id, {}, 0}))
            return true;
      for (EdgeId edge : function_.successors(block))
        for (ValueId argument : function_.arguments(edge))
          if (holds(argument, {{}, edge, 0})) return true;
    }
    return false;
  }

private:
  bool find_tests() {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (compares_with_literal(function_, id)) {
          tests_.resize(function_.values.size());
          for_each_definition(function_, id, [&](ValueId predicate) { tests_[predicate.index()] = id; });
        }
    return !tests_.empty();
  }

  // The equality that holds if the guard, a setp.ne, is false.
  std::optional<Equality> if_not_guarded(InstructionId id) const {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.kind != InstructionKind::real || !instruction.guard) return std::nullopt;
    const InstructionId test = tests_[instruction.guard.index()];
    if (!test) return std::nullopt;
    const Form& form = function_.form_of(id);
    if (!form.effects.branch && !form.effects.terminates) return std::nullopt;
    const std::span<const Operand> operands = function_.operands_of(test);
    if (function_.values[operands[1].as_value()].is_undefined) return std::nullopt;
    return Equality{operands[1].as_value(), operands[2].immediate};
  }

  // The point that is reached if the predicate is false, if it is reached in no other way.
  std::optional<Place> where_not_taken(BlockId block, InstructionId id) const {
    const bool negated = function_.instructions[id].guard_negated;
    if (function_.form_of(id).effects.terminates) return negated ? std::nullopt : std::optional(Place{block, id});
    const std::span<const EdgeId> successors = function_.successors(block);
    if (function_.terminator(block) != id || successors.size() != 2) return std::nullopt;
    const BlockId target = function_.edges[successors[negated ? 0 : 1]].to;
    if (flow_.predecessors(target).size() != 1) return std::nullopt;
    return Place{target, {}};
  }

  bool is_behind(const Place& place, InstructionId id) const {
    const BlockId block = function_.instructions[id].block;
    if (block != place.block) return dominators_.dominates(place.block, block);
    if (!place.behind) return true;
    for (InstructionId next = function_.instructions[place.behind].next; next; next = function_.instructions[next].next)
      if (next == id) return true;
    return false;
  }

  const Function& function_;
  const ControlFlow& flow_;
  const DominatorTree& dominators_;
  std::vector<InstructionId> tests_; // by the predicate that they write; empty: there is none
  std::vector<Found> found_;
};

void replace_uses(Function& function, const EqualityFinder& finder, const DefUse& def_use, const Found& found) {
  const auto& [equality, place, next] = found;
  std::vector<Use> uses;
  for (const Use& use : def_use.uses(equality.value))
    if (finder.holds_for(place, use)) uses.push_back(use);
  if (uses.empty()) return;
  Builder builder = builder_at_start(function, place.block);
  if (place.behind) builder.after(place.behind);
  const ValueId number = function.add_value(function.values[equality.value]);
  builder.emit("mov.b32", {Operand::definition(number), Operand::integer(equality.literal)});
  for (const Use& use : uses)
    if (use.edge)
      function.arguments(use.edge)[use.index] = number;
    else
      function.operands_of(use.instruction)[use.index].id = number.index();
  function.changed();
}

} // namespace

bool has_equalities(const Function& function, const ControlFlow& flow, const DominatorTree& dominators) {
  return EqualityFinder(function, flow, dominators).any_use();
}

void use_equalities(Function& function, const ControlFlow& flow, const DominatorTree& dominators) {
  const DefUse def_use(function);
  const EqualityFinder finder(function, flow, dominators);
  for (const Found& found : finder.found())
    replace_uses(function, finder, def_use, found);
}

} // namespace ptxrewrite::ir
