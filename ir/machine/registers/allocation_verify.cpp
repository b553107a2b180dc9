// Checks an allocation by tracking the contents of every register, without live ranges or interference: a forward walk
// over the function to a fixed point, where joins keep only contents on which all predecessors agree. Rules:
//
//   1. Every value that the machine keeps in a register has one, in the right file, and below the file's limit;
//      `registers` and `predicates` exceed all numbers in use.
//   2. A 64-bit value starts at an even register, a 128-bit value at a multiple of four.
//   3. Every value that an instruction reads is in its register at this point: no path to the instruction has
//      overwritten it.
//   4. The values that one instruction writes are in different registers.
//   5. Before an instruction that keeps old values, each destination contains its old value, directly or by a move; the
//      move overwrites nothing that the instruction reads.
//   6. After an edge, each parameter's register contains the edge's argument, directly or by a move; the moves of an
//      edge are simultaneous.
//   7. The elements of a vector operand are in consecutive registers, in order, the first one aligned; or the
//      instruction has such a temporary, which overwrites nothing that is read after it.
#include "ir/machine/registers/allocation.h"

#include "ir/core/module.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ptxrewrite::ir {

namespace {

// The contents of a register: one word of a value. Predicates follow the general registers.
using Content = uint64_t;
constexpr Content nothing = UINT64_MAX;
constexpr Content word_of(ValueId value, unsigned unit) {
  return uint64_t{value.index()} << 8 | unit;
}
using State = std::vector<Content>;

class Verifier {
public:
  Verifier(const Function& function, const Allocation& allocation, const AllocationOptions& options)
      : function_(function), allocation_(allocation), options_(options), flow_(function),
        values_(function, flow_, options.compute_capability, allocation.apart) {
    for (const RegisterMove& move : allocation.moves) {
      if (move.edge) edge_moves_[{move.edge.index(), move.to.index()}] = move.from;
      if (move.instruction) old_moves_[{move.instruction.index(), move.to.index()}] = move.from;
    }
    for (const VectorTemporary& temporary : allocation.temporaries)
      temporaries_[{temporary.instruction.index(), temporary.operand}] = temporary;
  }

  std::vector<std::string> run() {
    check_numbers();
    if (!errors_.empty()) return errors_;
    std::vector<std::optional<State>> in(function_.blocks.size());
    const std::vector<BlockId>& order = flow_.reverse_postorder();
    in[order.front().index()] = State(options_.register_limit + options_.predicate_limit, nothing);
    for (bool changed = true; changed;) {
      changed = false;
      for (BlockId block : order)
        if (in[block.index()]) changed |= pass(block, *in[block.index()], in);
    }
    report_ = true;
    for (BlockId block : order)
      if (in[block.index()]) pass(block, *in[block.index()], in);
    return errors_;
  }

private:
  void complain(const std::string& what) {
    if (report_ && errors_.size() < 20) errors_.push_back(what);
  }
  std::string name(ValueId value) const {
    return function_.value_name(value) + " (value " + std::to_string(value.index()) + ")";
  }
  std::string place(InstructionId id) const {
    std::string text(function_.instructions[id].kind == InstructionKind::real ? function_.form_of(id).mnemonic : "row");
    return "instruction " + std::to_string(id.index()) + " (" + text + ")";
  }
  uint32_t slot(ValueId value) const {
    return allocation_.first_register(value) + (values_.is_predicate(value) ? options_.register_limit : 0);
  }

  // Rules 1 and 2.
  void check_numbers() {
    report_ = true;
    for (ValueId value : function_.values.ids()) {
      if (!values_.in_register(value) || values_.ranges(value).empty()) continue;
      uint16_t first = allocation_.first_register(value);
      if (first == Allocation::no_register) {
        complain(name(value) + " has no register");
        continue;
      }
      uint32_t units = values_.units(value);
      bool predicate = values_.is_predicate(value);
      if (first + units > (predicate ? options_.predicate_limit : options_.register_limit))
        complain(name(value) + " is beyond the limit");
      if (first + units > (predicate ? allocation_.predicates : allocation_.registers))
        complain(name(value) + " is beyond the number of registers used");
      if (!predicate && first % std::min(units, 4u) != 0) complain(name(value) + " is not aligned");
    }
    report_ = false;
  }

  bool holds(const State& state, ValueId value) const {
    for (unsigned unit = 0; unit < values_.units(value); ++unit)
      if (state[slot(value) + unit] != word_of(value, unit)) return false;
    return true;
  }
  // True if the register of `to` contains `from`.
  bool holds_as(const State& state, ValueId from, ValueId to) const {
    std::span<const ValueId> parts = values_.stands_for(from);
    if (parts.size() != 1 || values_.units(parts[0]) != values_.units(to)) return false;
    for (unsigned unit = 0; unit < values_.units(to); ++unit)
      if (state[slot(to) + unit] != word_of(parts[0], unit)) return false;
    return true;
  }
  void write(State& state, ValueId value) const {
    for (unsigned unit = 0; unit < values_.units(value); ++unit)
      state[slot(value) + unit] = word_of(value, unit);
  }

  // Interprets the block; returns true if a successor's state changed.
  bool pass(BlockId block, State state, std::vector<std::optional<State>>& in) {
    for (InstructionId id : function_.instructions_in(block))
      step(id, state);
    bool changed = false;
    for (EdgeId edge : function_.successors(block)) {
      State after = cross(edge, state);
      std::optional<State>& there = in[function_.edges[edge].to.index()];
      if (!there) {
        there = std::move(after);
        changed = true;
        continue;
      }
      for (size_t i = 0; i < after.size(); ++i)
        if ((*there)[i] != after[i] && (*there)[i] != nothing) {
          (*there)[i] = nothing;
          changed = true;
        }
    }
    return changed;
  }

  void step(InstructionId id, State& state) {
    std::vector<std::pair<ValueId, ValueId>> kept = kept_values(id);
    // Source temporaries and moved old values are written before any other read.
    for (ValueId value : values_.reads(id))
      if (!holds(state, value)) complain(place(id) + " reads " + name(value) + ", which its register no longer holds");
    std::vector<bool> moved(state.size());
    for (auto [old, destination] : kept) {
      if (!old_moves_.count({id.index(), destination.index()})) {
        if (!holds_as(state, old, destination))
          complain(place(id) + " keeps " + name(old) + ", which is not in the register of " + name(destination));
        continue;
      }
      for (unsigned unit = 0; unit < values_.units(destination); ++unit)
        moved[slot(destination) + unit] = true;
    }
    for (const VectorOperand& vector : vector_operands(function_, values_, id))
      check_vector(id, vector, state, moved);
    for (ValueId value : values_.reads(id)) {
      if (is_only_kept(id, value)) continue;
      for (unsigned unit = 0; unit < values_.units(value); ++unit)
        if (moved[slot(value) + unit] && !is_in_vector(id, value))
          complain(place(id) + " reads " + name(value) + ", over which a move in front of it writes");
    }
    std::map<uint32_t, ValueId> written;
    for (ValueId value : values_.writes(id)) {
      for (unsigned unit = 0; unit < values_.units(value); ++unit)
        if (!written.try_emplace(slot(value) + unit, value).second)
          complain(place(id) + " writes two values to the register of " + name(value));
      write(state, value);
    }
  }

  // Pairs of old value and destination, where both are in registers.
  std::vector<std::pair<ValueId, ValueId>> kept_values(InstructionId id) const {
    std::vector<std::pair<ValueId, ValueId>> result;
    if (function_.instructions[id].kind != InstructionKind::real || !function_.keeps_old_values(id)) return result;
    std::vector<ValueId> definitions;
    for_each_definition(function_, id, [&](ValueId value) { definitions.push_back(value); });
    size_t next = 0;
    for (const Operand& operand : function_.operands_of(id)) {
      if (!operand.is(OperandKind::value) || !operand.has(OperandFlag::old_value)) continue;
      ValueId destination = definitions[next++];
      if (function_.values[operand.as_value()].is_undefined || !values_.in_register(destination)) continue;
      result.push_back({operand.as_value(), destination});
    }
    return result;
  }

  bool names(InstructionId id, const Operand& operand, ValueId value) const {
    (void)id;
    if (!operand.is(OperandKind::value) || operand.is_definition()) return false;
    std::span<const ValueId> parts = values_.stands_for(operand.as_value());
    return std::find(parts.begin(), parts.end(), value) != parts.end();
  }
  // True if the instruction reads the value only as an old value.
  bool is_only_kept(InstructionId id, ValueId value) const {
    if (ValueId guard = function_.instructions[id].guard) {
      std::span<const ValueId> parts = values_.stands_for(guard);
      if (std::find(parts.begin(), parts.end(), value) != parts.end()) return false;
    }
    for (const Operand& operand : function_.operands_of(id))
      if (!operand.has(OperandFlag::old_value) && names(id, operand, value)) return false;
    return true;
  }
  // True if the value is read only as an element of a vector that is assembled before the instruction.
  bool is_in_vector(InstructionId id, ValueId value) const {
    std::span<const Operand> operands = function_.operands_of(id);
    if (ValueId guard = function_.instructions[id].guard; guard == value) return false;
    for (uint32_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is(OperandKind::vector) && temporaries_.count({id.index(), i})) {
        i += operands[i].group_size();
        continue;
      }
      if (names(id, operands[i], value)) return false;
    }
    return true;
  }

  // Rule 7.
  void check_vector(InstructionId id, const VectorOperand& vector, State& state, std::vector<bool>& moved) {
    auto found = temporaries_.find({id.index(), vector.operand});
    if (found != temporaries_.end()) {
      const VectorTemporary& temporary = found->second;
      if (temporary.first % vector.alignment != 0 || temporary.count < vector.registers)
        complain(place(id) + " has a temporary that does not suit its vector");
      if (temporary.first + temporary.count > allocation_.registers)
        complain(place(id) + " has a temporary beyond the registers used");
      for (uint32_t i = temporary.first; i < uint32_t{temporary.first} + temporary.count && i < state.size(); ++i) {
        if (!vector.definition) moved[i] = true;
        state[i] = nothing;
      }
      return;
    }
    std::optional<uint32_t> first;
    for (const VectorOperand::Element& element : vector.elements) {
      if (!element.value) {
        complain(place(id) + " has no temporary for a vector with elements outside of registers");
        return;
      }
      uint32_t number = allocation_.first_register(element.value);
      uint32_t expected = first ? *first + element.offset : number;
      if (!first) first = number;
      if (number != expected || *first % vector.alignment != 0)
        complain(place(id) + " has a vector whose elements are not neighbours: " + name(element.value));
    }
  }

  // Rule 6.
  State cross(EdgeId edge, const State& before) {
    State after = before;
    BlockId to = function_.edges[edge].to;
    std::span<const ValueId> parameters = function_.parameters(to);
    std::string where = "edge " + function_.block_name(function_.edges[edge].from) + " -> " + function_.block_name(to);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!values_.in_register(parameters[i]) || values_.ranges(parameters[i]).empty()) continue;
      ValueId argument = function_.arguments(edge)[i];
      if (!function_.values[argument].is_undefined) {
        const bool move = edge_moves_.count({edge.index(), parameters[i].index()}) != 0;
        for (ValueId part : values_.stands_for(argument))
          if (move && !holds(before, part)) complain(where + ": " + name(part) + " is lost before it is moved");
        if (!move && !holds_as(before, argument, parameters[i]))
          complain(where + ": the register of " + name(parameters[i]) + " does not hold " + name(argument));
      }
      write(after, parameters[i]);
    }
    return after;
  }

  const Function& function_;
  const Allocation& allocation_;
  const AllocationOptions& options_;
  ControlFlow flow_;
  MachineValues values_;
  std::map<std::pair<uint32_t, uint32_t>, ValueId> edge_moves_, old_moves_;
  std::map<std::pair<uint32_t, uint32_t>, VectorTemporary> temporaries_;
  std::vector<std::string> errors_;
  bool report_ = false;
};

} // namespace

std::vector<std::string> verify_allocation(const Function& function, const Allocation& allocation,
                                           const AllocationOptions& options) {
  return Verifier(function, allocation, options).run();
}

} // namespace ptxrewrite::ir
