// Determined by assembling a store after each kind of comparison and branch; see equalities.h.
#include "ir/machine/prepare/equalities.h"

#include "ir/core/insertion.h"
#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"
#include "ir/flow/dominators.h"

#include <optional>
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

class EqualityUser {
public:
  explicit EqualityUser(Function& function)
      : function_(function), flow_(function), dominators_(function, flow_), def_use_(function) {}

  bool run() {
    std::vector<std::pair<Equality, Place>> found;
    for (BlockId block : flow_.reverse_postorder())
      for (InstructionId id : function_.instructions_in(block))
        if (std::optional<Equality> equality = if_not_guarded(id))
          if (std::optional<Place> place = where_not_taken(block, id)) found.emplace_back(*equality, *place);
    bool changed = false;
    for (const auto& [equality, place] : found)
      changed |= apply(equality, place);
    return changed;
  }

private:
  // The equality that holds if the guard, a setp.ne, is false.
  std::optional<Equality> if_not_guarded(InstructionId id) const {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.kind != InstructionKind::real || !instruction.guard) return std::nullopt;
    const Form& form = function_.form_of(id);
    if (!form.effects.branch && !form.effects.terminates) return std::nullopt;
    const InstructionId test = def_use_.definition(instruction.guard).instruction;
    if (!test || !compares_with_literal(function_, test)) return std::nullopt;
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

  bool apply(const Equality& equality, const Place& place) {
    std::vector<Use> uses;
    for (const Use& use : def_use_.uses(equality.value))
      if (use.edge ? dominators_.dominates(place.block, function_.edges[use.edge].from)
                   : use.index != Use::guard_index && is_behind(place, use.instruction))
        uses.push_back(use);
    if (uses.empty()) return false;
    Builder builder = builder_at_start(function_, place.block);
    if (place.behind) builder.after(place.behind);
    const ValueId number = function_.add_value(function_.values[equality.value]);
    builder.emit("mov.b32", {Operand::definition(number), Operand::integer(equality.literal)});
    for (const Use& use : uses)
      if (use.edge)
        function_.arguments(use.edge)[use.index] = number;
      else
        function_.operands_of(use.instruction)[use.index].id = number.index();
    function_.changed();
    return true;
  }

  Function& function_;
  ControlFlow flow_;
  DominatorTree dominators_;
  DefUse def_use_;
};

} // namespace

bool use_equalities(Function& function) {
  return EqualityUser(function).run();
}

bool may_have_equalities(const Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (compares_with_literal(function, id)) return true;
  return false;
}

} // namespace ptxrewrite::ir
