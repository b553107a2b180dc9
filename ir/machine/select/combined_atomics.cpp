// Determined by assembling every operation at an address that all lanes share and at others, with literal, uniform and
// different operands, the old value read or not: tests/unit/ir/machine/atomics_test.cpp.
#include "ir/machine/select/combined_atomics.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <optional>
#include <set>
#include <tuple>

namespace ptxrewrite::ir {

namespace {

// True if the address of a memory access is the same in all lanes.
bool has_uniform_address(const LoweringContext& context, const UniformValues& uniform, InstructionId id) {
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
    if (!operand->is(OperandKind::address)) continue;
    for (size_t member = 1; member <= operand->group_size(); ++member)
      if (operand[member].is(OperandKind::value) && !uniform.uniform(operand[member].as_value()) &&
          context.source_of(operand[member].as_value()) == ValueSource::computed)
        return false;
    return true;
  }
  return false;
}

// Conditions that hold in at most one lane of a warp: lane number or tid.x, alone or with a uniform summand, equals a
// literal or a value of a constant bank. ptxas does not recognise other comparisons, masks or tid.y.
class OneLane {
public:
  OneLane(const LoweringContext& context, const UniformValues& uniform) : context_(context), uniform_(uniform) {}

  bool executes(InstructionId id) const {
    const Instruction& instruction = context_.function.instructions[id];
    if (instruction.guard && holds_in_one(instruction.guard, !instruction.guard_negated)) return true;
    BlockId block = instruction.block, skipped_to;
    for (int steps = 0; steps < most_steps; ++steps) {
      if (const std::optional<Entry> entry = only_entry(block)) {
        // ptxas joins two conditions that skip the same code into one predicate, unless lanes exit there.
        const bool joins = skipped_to && entry->otherwise == skipped_to && !only_exits(skipped_to);
        if (!joins && holds_in_one(entry->condition, entry->truth)) return true;
        skipped_to = entry->otherwise;
      }
      const BlockId before = context_.dominators.immediate_dominator(block);
      if (!before || before == block) return false;
      block = before;
    }
    return false;
  }

private:
  static constexpr int most_steps = 8, most_summands = 3;

  // A block is executed if the condition has this value, and another block otherwise.
  struct Entry {
    ValueId condition;
    bool truth = false;
    BlockId otherwise;
  };

  std::optional<Entry> only_entry(BlockId block) const {
    const Function& function = context_.function;
    const std::span<const EdgeId> predecessors = context_.flow.predecessors(block);
    if (predecessors.size() != 1) return std::nullopt;
    const BlockId before = function.edges[predecessors[0]].from;
    const InstructionId branch = function.terminator(before);
    const std::span<const EdgeId> successors = function.successors(before);
    if (!branch || !function.instructions[branch].guard || successors.size() != 2) return std::nullopt;
    const bool is_taken = successors[0] == predecessors[0];
    return Entry{function.instructions[branch].guard, is_taken != function.instructions[branch].guard_negated,
                 function.edges[successors[is_taken ? 1 : 0]].to};
  }

  bool only_exits(BlockId block) const {
    const InstructionId first = context_.function.blocks[block].first;
    return first && first == context_.function.blocks[block].last &&
           (context_.function.is_opcode(first, Opcode::ret) || context_.function.is_opcode(first, Opcode::exit));
  }

  bool holds_in_one(ValueId predicate, bool truth) const {
    const InstructionId test = context_.values.definition(predicate);
    const Form* compare = test ? context_.form(test) : nullptr;
    if (!compare || compare->opcode != Opcode::setp || !is_int32(*compare)) return false;
    if (!compare->has(truth ? Modifier::eq : Modifier::ne) || context_.function.operands_of(test).size() != 3)
      return false;
    const Operand *left = context_.source(test, 0), *right = context_.source(test, 1);
    return (differs_between_lanes(left, most_summands) && is_known(right)) ||
           (differs_between_lanes(right, most_summands) && is_known(left));
  }

  bool is_known(const Operand* operand) const {
    return operand->is_constant() ||
           (operand->is(OperandKind::value) && context_.source_of(operand->as_value()) != ValueSource::computed);
  }

  bool differs_between_lanes(const Operand* operand, int summands) const {
    if (operand && operand->is(OperandKind::special_register)) {
      const SpecialRegister special = static_cast<SpecialRegister>(operand->id);
      return special == SpecialRegister::laneid ||
             (special == SpecialRegister::tid && operand->selector == component_selector(0));
    }
    const InstructionId id = summands > 0 ? context_.definition(operand) : InstructionId();
    const Form* form = id ? context_.form(id) : nullptr;
    if (!form) return false;
    if (form->opcode == Opcode::mov) return differs_between_lanes(context_.source(id, 0), summands);
    if (!is_int32(*form)) return false;
    if (form->opcode == Opcode::mad && form->has(Modifier::lo))
      return is_uniform(context_.source(id, 0)) && is_uniform(context_.source(id, 1)) &&
             differs_between_lanes(context_.source(id, 2), summands - 1);
    if (form->opcode != Opcode::add) return false;
    const Operand *left = context_.source(id, 0), *right = context_.source(id, 1);
    return (is_uniform(left) && differs_between_lanes(right, summands - 1)) ||
           (is_uniform(right) && differs_between_lanes(left, summands - 1));
  }

  bool is_uniform(const Operand* operand) const {
    return operand && (!operand->is(OperandKind::value) || uniform_.uniform(operand->as_value()));
  }

  const LoweringContext& context_;
  const UniformValues& uniform_;
};

bool is_read(const LoweringContext& context, InstructionId id) {
  const ValueId old = context.result(id);
  return old && !(context.values.readers(old).empty() && !context.values.merges(old));
}

// How the lanes of a warp combine their atomic operations at one address.
struct Combination {
  bool adds = false;    // otherwise min, max, and, or, xor
  bool is_long = false; // 64 bits
  bool same = false;    // all lanes have the same operand
  bool ranks = false;   // the old value is read: each lane computes its own one
};

// Returns nothing if each lane performs its own.
std::optional<Combination> combination_of(const LoweringContext& context, const UniformValues& uniform,
                                          InstructionId id) {
  const Form& form = *context.form(id);
  const bool adds = form.has(Modifier::add);
  const bool reduces = form.has(Modifier::min) || form.has(Modifier::max) || form.has(Modifier::and_) ||
                       form.has(Modifier::or_) || form.has(Modifier::xor_);
  if (form.kind != InstructionClass::atomic || is_float(form.type()) || (!adds && !reduces)) return std::nullopt;
  if (adds_one_to_shared(context, id) || !has_uniform_address(context, uniform, id)) return std::nullopt;
  const Operand* given = context.source(id, 1);
  const bool same = !given->is(OperandKind::value) || context.source_of(given->as_value()) != ValueSource::computed ||
                    uniform.uniform(given->as_value());
  const Combination combination{adds, bit_width(form.type()) == 64, same, is_read(context, id)};
  if (combination.is_long && !(adds && same)) return std::nullopt;
  if (combination.ranks && !adds) return std::nullopt;
  if (OneLane(context, uniform).executes(id)) return std::nullopt;
  return combination;
}

// A literal of 64 bits is moved, and so is zero where it is one of a pair of registers (CAS).
uint32_t moves_of_literals(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const bool pairs = form.has(Modifier::cas), is_long = bit_width(form.type()) == 64 && !is_float(form.type());
  const uint32_t words = is_long ? fact(context.capability, MachineFact::wide_literal) : 1;
  uint32_t moves = 0;
  for (size_t i = 1; const Operand* operand = context.source(id, i); ++i)
    if (operand->is(OperandKind::integer) && (operand->immediate == 0 ? pairs : is_long)) moves += words;
  return moves;
}

// Adds the instructions beside the atomic operations. Those of a block share what they need alike.
class CombinedAtomics {
public:
  CombinedAtomics(LoweringContext& context, const UniformValues& uniform) : context_(context), uniform_(uniform) {}

  void weigh(InstructionId id) {
    if (context_.form(id)->kind != InstructionClass::atomic) return;
    InstructionCost& at = context_.costs[id.index()];
    const uint32_t moves = has(context_.capability, MachineFact::separate_lanes) ? moves_of_literals(context_, id) : 0;
    at.weight = static_cast<uint16_t>(at.weight + moves);
    const std::optional<Combination> combination = combination_of(context_, uniform_, id);
    if (!combination) return;
    if (combination->adds) drop_move_of_one(id);
    if (context_.function.instructions[id].block != block_) shared_ = {};
    block_ = context_.function.instructions[id].block;
    at.weight = static_cast<uint16_t>(at.weight + work_of(*combination, id) + work_of_address(id) +
                                      (lane_known_ ? 0 : figure(Heuristic::election_lane)));
    lane_known_ = true;
  }

private:
  // Of a block, so far.
  struct Shared {
    bool elects = false, counts = false, ranks = false, offsets = false;
    std::set<std::tuple<uint32_t, OperandKind, uint32_t, int64_t>> reductions; // form and operand
  };

  uint32_t figure(Heuristic which) const { return heuristic(context_.capability, which); }

  // The number of lanes is what they add: a literal 1 is not moved.
  void drop_move_of_one(InstructionId id) {
    const Operand* given = context_.source(id, 1);
    const auto moved = context_.constant_moves.find(id);
    if (!given->is(OperandKind::integer) || given->immediate != 1 || moved == context_.constant_moves.end()) return;
    if (moved->second == 0) return;
    --moved->second;
    --context_.costs[id.index()].weight;
  }

  uint32_t work_of(const Combination& combination, InstructionId id) {
    if (combination.same && combination.adds) return work_of_count(combination);
    if (combination.ranks) return figure(Heuristic::election) + figure(Heuristic::election_scan);
    if (!has(context_.capability, MachineFact::warp_reductions))
      return figure(Heuristic::election) + figure(Heuristic::election_reduction) +
             (combination.same ? 0 : figure(Heuristic::election_shuffles));
    const Operand& given = *context_.source(id, 1);
    const uint32_t form = context_.function.instructions[id].form.index();
    const bool is_known = !shared_.reductions.emplace(form, given.kind, given.id, given.immediate).second;
    const uint32_t work =
        (shared_.elects ? 0 : figure(Heuristic::election)) + (is_known ? 0 : figure(Heuristic::election_reduction));
    shared_.elects = true;
    return work;
  }

  uint32_t work_of_count(const Combination& combination) {
    uint32_t work =
        (shared_.elects ? 0 : figure(Heuristic::election)) + (shared_.counts ? 0 : figure(Heuristic::election_count));
    shared_.elects = shared_.counts = true;
    if (combination.ranks) {
      work += figure(shared_.ranks ? Heuristic::election_next_rank : Heuristic::election_rank);
      shared_.ranks = true;
    }
    if (combination.is_long)
      work += figure(combination.ranks ? Heuristic::election_long_rank : Heuristic::election_long);
    return work;
  }

  // An offset in global memory is added on the uniform datapath, once for all.
  uint32_t work_of_address(InstructionId id) {
    if (is_shared(context_.form(id)->space) || shared_.offsets || !has_offset(id)) return 0;
    shared_.offsets = true;
    return figure(Heuristic::election_address);
  }

  bool has_offset(InstructionId id) const {
    const Operand* address = context_.source(id, 0);
    if (!address->is(OperandKind::address)) return false;
    if (address->immediate != 0) return true;
    for (size_t member = 1; member <= address->group_size(); ++member) {
      if (!address[member].is(OperandKind::value)) continue;
      const ValueId value = address[member].as_value(), rest = context_.without_constant[value.index()];
      if (rest && rest != value) return true;
    }
    return false;
  }

  LoweringContext& context_;
  const UniformValues& uniform_;
  bool lane_known_ = false; // the lane number has been read for an election
  BlockId block_;
  Shared shared_;
};

} // namespace

void weigh_combined_atomics(LoweringContext& context, const UniformValues& uniform) {
  if (!has(context.capability, MachineFact::combined_atomics) || !context.facts.contents.has(InstructionClass::atomic))
    return;
  CombinedAtomics atomics(context, uniform);
  context.for_each_needed([&](InstructionId id) { atomics.weigh(id); });
}

} // namespace ptxrewrite::ir
