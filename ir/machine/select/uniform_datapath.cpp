// Determined by assembling instructions on parameters and the block index, with readers of each kind: see
// uniform_datapath.h. A greatest fixed point: starts with all candidates and removes those that do not qualify.
#include "ir/machine/select/uniform_datapath.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/fuse/constant_operands.h"
#include "ir/machine/fuse/wide_arithmetic.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::ir {

namespace {

bool suits(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode == Opcode::cvt && form.type(0) == ScalarType::s64 && form.type(1) == ScalarType::s32) return true;
  if (is_float(form.type()) || bit_width(form.type()) != 32) return false;
  return is_extreme(context, id) || form.kind == InstructionClass::integer || form.kind == InstructionClass::logic ||
         form.kind == InstructionClass::shift;
}

class UniformDatapath {
public:
  UniformDatapath(const LoweringContext& context, const UniformValues& uniform)
      : context_(context), function_(context.function), uniform_(uniform), there_(function_.instructions.size()),
        watched_(function_.instructions.size()), asked_(function_.values.size()), waits_(function_.instructions.size()),
        passed_(function_.values.size()) {
    for (BlockId block : function_.layout)
      for (EdgeId edge : function_.successors(block)) {
        const std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
        const std::span<const ValueId> arguments = function_.arguments(edge);
        for (size_t i = 0; i < std::min(parameters.size(), arguments.size()); ++i)
          passed_[arguments[i].index()] =
              uniform_.uniform(parameters[i]) || passed_[arguments[i].index()] == Passed::to_uniform
                  ? Passed::to_uniform
                  : Passed::to_lanes;
      }
  }

  std::vector<bool> run() {
    context_.for_each_needed([&](InstructionId id) { there_[id.index()] = could_be(id); });
    settle();
    alone_ = true; // two uniform operands of one per-lane instruction both drop out
    settle();
    context_.for_each_needed([&](InstructionId id) { // reads of the index are not work: they write either register file
      if (reads_index(id)) there_[id.index()] = false;
    });
    return std::move(there_);
  }

private:
  // Removes candidates that do not qualify, in rounds, until all remaining ones do. After the first round, only those
  // are examined again whose answer rested on a candidate that has left.
  void settle() {
    std::vector<InstructionId> round, leaving;
    context_.for_each_needed([&](InstructionId id) {
      if (there_[id.index()]) round.push_back(id);
    });
    while (!round.empty()) {
      leaving.clear();
      for (InstructionId id : round) {
        waits_[id.index()] = false;
        current_ = id;
        if (there_[id.index()] && !stays(id)) leaving.push_back(id);
      }
      for (InstructionId id : leaving)
        there_[id.index()] = false;
      round.clear();
      for (InstructionId id : leaving) {
        wake(watched_[id.index()], round);
        for_each_use(function_, id, [&](ValueId value) { wake(asked_[value.index()], round); });
      }
    }
  }

  static constexpr uint32_t none = UINT32_MAX;

  // Candidates whose answer may change, as a chain through `watchers_`.
  struct Chain {
    uint32_t last = none;
  };
  struct Watcher {
    InstructionId candidate;
    uint32_t before = none;
  };

  void watch(Chain& chain) {
    if (chain.last != none && watchers_[chain.last].candidate == current_) return;
    watchers_.push_back({current_, chain.last});
    chain.last = static_cast<uint32_t>(watchers_.size() - 1);
  }

  void wake(Chain& chain, std::vector<InstructionId>& round) {
    for (uint32_t at = chain.last; at != none; at = watchers_[at].before) {
      const InstructionId candidate = watchers_[at].candidate;
      if (!there_[candidate.index()] || waits_[candidate.index()]) continue;
      waits_[candidate.index()] = true;
      round.push_back(candidate);
    }
    chain.last = none;
  }

  // True if the instruction still is a candidate; if it leaves, the present one is examined again.
  bool is_there(InstructionId id) {
    if (!there_[id.index()]) return false;
    watch(watched_[id.index()]);
    return true;
  }

  // True if the instruction reads the block index.
  bool reads_index(InstructionId id) const {
    const Operand* operand = context_.source(id, 0);
    return function_.is_opcode(id, Opcode::mov) && operand && operand->is(OperandKind::special_register);
  }

  bool could_be(InstructionId id) const {
    const ValueId value = context_.result(id);
    if (!value || function_.instructions[id].guard || !uniform_.uniform(value)) return false;
    if (reads_index(id)) return context_.source_of(value) == ValueSource::computed;
    return context_.costs[id.index()].weight > 0 && context_.form(id)->effects.pure() && suits(context_, id);
  }

  bool stays(InstructionId id) {
    const ValueId value = context_.result(id);
    if (context_.values.merges(value) && !is_moved_to_lanes(id, value)) return false;
    if (!operands_come_from_there(id)) return false;
    if (is_wide_multiply_add(context_, id)) return all_read_pair(value, 0);
    return std::ranges::all_of(context_.values.readers(value),
                               [&](InstructionId reader) { return reads_there(reader, value, 0); });
  }

  // True if the value only merges with values that differ between lanes: it is moved to their register where it is
  // passed, unless it is computed under a predicate.
  bool is_moved_to_lanes(InstructionId id, ValueId value) const {
    return passed_[value.index()] == Passed::to_lanes && !is_short_skip(function_.instructions[id].block);
  }

  // True for code that is likely to be predicated, as branches.cpp decides it later.
  bool is_short_skip(BlockId block) const {
    if (context_.flow.predecessors(block).size() != 1 || function_.successors(block).size() != 1) return false;
    const EdgeId entering = context_.flow.predecessors(block)[0];
    const BlockId before = function_.edges[entering].from;
    const BlockId behind = function_.edges[function_.successors(block)[0]].to;
    const std::span<const EdgeId> ways = function_.successors(before);
    if (ways.size() != 2) return false;
    const BlockId other = function_.edges[ways[0] == entering ? ways[1] : ways[0]].to;
    const std::span<const EdgeId> on = function_.successors(other);
    if (other != behind && (on.size() != 1 || function_.edges[on[0]].to != behind)) return false;
    uint32_t size = 0;
    const uint32_t longest = heuristic(context_.capability, Heuristic::skipped_divergent);
    for (InstructionId id : function_.instructions_in(block)) {
      const Form* form = context_.form(id);
      if (!form || !context_.needed[id.index()] || form->opcode == Opcode::bra) continue;
      if (form->effects.barrier || form->effects.convergent || form->effects.call) return false;
      size += context_.costs[id.index()].weight;
      if (size > longest) return false;
    }
    return true;
  }

  bool operands_come_from_there(InstructionId id) {
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i)
      if (operand->is(OperandKind::value) && !comes_from_there(operand->as_value(), id)) return false;
    return true;
  }

  bool comes_from_there(ValueId value, InstructionId reader) {
    const InstructionId definition = context_.values.definition(value);
    if (!definition) return false;
    if (context_.absorbed[definition.index()]) return operands_come_from_there(definition);
    const ValueSource source = context_.source_of(value);
    if (source == ValueSource::literal) return true;
    if (source == ValueSource::constant_bank) return !stands_in_register(value, source, reader);
    return is_there(definition);
  }

  // True if per-lane work on the path to `there` needs the value in a register.
  bool stands_in_register(ValueId value, ValueSource source, InstructionId there) {
    if (context_.values.merges(value)) return true;
    watch(asked_[value.index()]);
    return std::ranges::any_of(context_.values.readers(value), [&](InstructionId reader) {
      if (context_.reads_as_address(reader, value) && !has(context_.capability, MachineFact::uniform_addresses))
        return false; // it is moved there
      return context_.needed[reader.index()] && !there_[reader.index()] &&
             context_.dominators.dominates(function_.instructions[reader].block, function_.instructions[there].block) &&
             !reads_without_register(context_, reader, value, source);
    });
  }

  // True if the reader can read the value from a uniform register.
  bool reads_there(InstructionId reader, ValueId value, int depth) {
    constexpr int longest_chain = 4;
    if (!context_.needed[reader.index()] || is_there(reader)) return true;
    const Form* form = context_.form(reader);
    if (!form || depth == longest_chain) return false;
    if (context_.reads_as_address(reader, value)) return is_shared(form->space) && depth == 0;
    if (context_.absorbed[reader.index()]) return passes_on(reader, value, depth);
    return has_place(*form, reader, value) && leaves_place(reader, value, 0);
  }

  // True if all readers of mad.wide's result can do with uniform registers, or with a copy of both words.
  bool all_read_pair(ValueId value, int depth) {
    return std::ranges::all_of(context_.values.readers(value),
                               [&](InstructionId reader) { return reads_pair(reader, depth); });
  }

  bool reads_pair(InstructionId reader, int depth) {
    constexpr int longest_chain = 4;
    if (!context_.needed[reader.index()] || is_there(reader)) return true;
    const Form* form = context_.form(reader);
    if (!form || depth == longest_chain) return false;
    if (context_.absorbed[reader.index()])
      return is_left_to_accesses(context_, reader) && all_read_pair(context_.result(reader), depth + 1);
    if (is_memory(*form)) return form->space == StateSpace::global || form->space == StateSpace::none;
    if (is_wide_multiply_add(context_, reader)) return !context_.joined_sums.contains(reader);
    return form->opcode == Opcode::add && bit_width(form->type()) == 64;
  }

  // True if the readers of an absorbed instruction can read the value there instead.
  bool passes_on(InstructionId absorbed, ValueId value, int depth) {
    const ValueId result = context_.result(absorbed);
    if (!result || context_.words_of(result) > 1 || context_.values.merges(result)) return false;
    const bool shifted = is_shifted(absorbed, value);
    return std::ranges::all_of(context_.values.readers(result), [&](InstructionId next) {
      if (is_there(next)) return true;
      return !shifted && leaves_place(absorbed, value, 0) && reads_there(next, result, depth + 1);
    });
  }

  bool has_place(const Form& form, InstructionId reader, ValueId value) const {
    const Operand* first = context_.source(reader, 0);
    const bool is_first = first && first->is(OperandKind::value) && first->as_value() == value;
    if (is_shifted(reader, value)) return false;
    switch (form.kind) {
    case InstructionClass::shift:
      return !is_first && bit_width(form.type()) == 32;
    case InstructionClass::conversion:
      return is_float(form.type(0)) && bit_width(form.type(0)) == 32;
    case InstructionClass::selection:
    case InstructionClass::logic:
    case InstructionClass::comparison:
    case InstructionClass::integer:
    case InstructionClass::floating_point:
      return bit_width(form.type()) == 32 && !form.has(Modifier::wide);
    default:
      return false;
    }
  }

  // True if no other operand of the machine instruction is uniform, an immediate or in a constant bank.
  bool leaves_place(InstructionId reader, ValueId value, int depth) const {
    const bool shifts = context_.form(reader)->kind == InstructionClass::shift;
    for (size_t i = 0; const Operand* operand = context_.source(reader, i); ++i) {
      if (operand->is_constant()) {
        if (operand->immediate != 0 && !shifts && !is_power_of_two_factor(reader, *operand)) return false;
        continue;
      }
      if (!operand->is(OperandKind::value) || operand->as_value() == value) continue;
      const ValueId other = operand->as_value();
      if (function_.values[other].type == ScalarType::pred) continue;
      const InstructionId definition = context_.values.definition(other);
      if (context_.source_of(other) == ValueSource::constant_bank) return false;
      if (!definition) continue;
      if (context_.absorbed[definition.index()] && depth < 3) {
        if (!leaves_place(definition, value, depth + 1)) return false;
      } else if (alone_ && there_[definition.index()]) {
        return false;
      }
    }
    return true;
  }

  // True if `value` is the shifted operand, which LEA and shifts can read only from per-lane registers.
  bool is_shifted(InstructionId id, ValueId value) const {
    const Form& form = *context_.form(id);
    if (form.kind != InstructionClass::shift && form.opcode != Opcode::mul && form.opcode != Opcode::mad) return false;
    bool is_factor = false, by_power = form.kind == InstructionClass::shift;
    for (size_t i : {0, 1}) {
      const Operand* operand = context_.source(id, i);
      if (!operand) continue;
      is_factor |= operand->is(OperandKind::value) && operand->as_value() == value && (i == 0 || !by_power);
      by_power |= is_power_of_two_factor(id, *operand);
    }
    return is_factor && by_power;
  }

  // The shift amount of LEA is not an operand.
  bool is_power_of_two_factor(InstructionId id, const Operand& operand) const {
    const Opcode opcode = context_.form(id)->opcode;
    return (opcode == Opcode::mul || opcode == Opcode::mad) && operand.is(OperandKind::integer) &&
           operand.immediate > 0 && (operand.immediate & (operand.immediate - 1)) == 0;
  }

  const LoweringContext& context_;
  const Function& function_;
  const UniformValues& uniform_;
  std::vector<bool> there_;    // by InstructionId
  std::vector<Chain> watched_; // by InstructionId: candidates that stay only while it is one
  std::vector<Chain> asked_; // by ValueId: candidates that read the constant, which its readers may need in a register
  std::vector<Watcher> watchers_;
  std::vector<bool> waits_; // by InstructionId: to be examined in the next round
  InstructionId current_;   // under examination
  enum class Passed : uint8_t { nowhere, to_lanes, to_uniform };
  std::vector<Passed> passed_; // by ValueId: the parameters that it is passed to
  bool alone_ = false;         // require that a per-lane reader reads only one uniform register
};

} // namespace

bool is_extreme(const LoweringContext& context, InstructionId id) {
  const Opcode opcode = context.form(id)->opcode;
  return opcode == Opcode::min || opcode == Opcode::max || (opcode == Opcode::selp && context.absorbs[id.index()]);
}

std::vector<bool> on_uniform_datapath(const LoweringContext& context, const UniformValues& uniform) {
  return UniformDatapath(context, uniform).run();
}

void weigh_uniform_loads(LoweringContext& context) {
  std::map<ValueId, std::vector<BlockId>> loaded; // by block
  context.for_each_needed([&](InstructionId id) {
    if (!context.uniform[id.index()]) return;
    const BlockId block = context.function.instructions[id].block;
    for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
      if (!operand->is(OperandKind::value) || context.source_of(operand->as_value()) != ValueSource::constant_bank)
        continue;
      std::vector<BlockId>& places = loaded[operand->as_value()];
      if (std::ranges::any_of(places, [&](BlockId place) { return context.dominators.dominates(place, block); }))
        continue;
      places.push_back(block);
      ++context.costs[id.index()].uniform;
    }
  });
}

} // namespace ptxrewrite::ir
