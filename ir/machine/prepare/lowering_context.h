// State shared by the fusion rules: analyses of the function being lowered, and the cost of each instruction so far.
// Private to ir/machine.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/machine/figures/pipe.h"
#include "ir/machine/prepare/instruction_facts.h"
#include "ir/machine/prepare/value_flow.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

class UniformValues;

// Where the bits of a value are before they are in a register.
enum class ValueSource : uint8_t {
  computed,      // a register
  literal,       // in the instruction word
  constant_bank, // kernel parameters, .const variables, the launch's shape, and addresses of global variables
};

// A 32-bit value times a value or literal, extended to 64 bits.
struct WideProduct {
  ValueId value;
  OperandKind kind = OperandKind::integer; // of the factor
  int64_t factor = 0;
  bool is_signed = false;
  auto operator<=>(const WideProduct&) const = default;
};

struct LoweringContext {
  const Function& function;
  const ControlFlow& flow;
  const ValueFlow& values;
  uint32_t capability;
  std::vector<InstructionCost>& costs;
  std::vector<bool> absorbed; // by InstructionId
  std::vector<bool> absorbs;  // has absorbed a producer and cannot absorb another
  std::vector<bool> needed;   // not dead
  const DominatorTree& dominators;
  // By ValueId: an equal value computed before, or one without a constant that accesses add. Invalid: itself.
  std::vector<ValueId> without_constant;
  std::map<std::pair<ValueId, ValueId>, ValueId> sums; // of two values, by the first instruction that computes the sum
  std::vector<bool> reads_sum;                         // by InstructionId: an operand is a sum of linear registers
  std::vector<bool> low_halves; // by ValueId, on machines of the first generation: see first_generation.h
  std::map<InstructionId, std::vector<Operand>> leaves = {}; // of logic that has absorbed other logic
  std::set<ValueId> negated = {};                            // factors whose negation has been computed
  std::set<ValueId> moved = {};      // factors from constant banks that have been moved into registers
  std::vector<bool> predicated = {}; // by BlockId: short, and skipped by a predicate instead of a branch
  std::map<WideProduct, InstructionId> wide_products = {}; // computed so far, by the first mad.wide
  std::set<InstructionId> joined_sums = {};                // mad.wide whose sums are one with another's
  std::vector<bool> uniform = {}; // by InstructionId: work on the uniform datapath, of 32 bits or mad.wide
  const UniformValues* uniform_values = nullptr;
  mutable std::optional<bool> uses_uniform_registers = {}; // unset until uniform_base.cpp asks for it
  std::vector<InstructionId> based_sums = {}; // sums of which accesses read both terms: see uniform_base.h
  // The part of an instruction's cost that moves constants into registers before it.
  std::map<InstructionId, uint16_t> constant_moves = {};
  std::vector<bool> in_section = {};        // by InstructionId: in a section of a hardware form, executed as written
  std::vector<uint32_t> layout_places = {}; // by BlockId: position in the text
  // Position in the text behind which ptxas orders blocks anew; unset until counted_loop.cpp asks for it.
  mutable std::optional<uint32_t> reordered_from = {};
  const Function* written = nullptr; // before the preparation, with the same ids; nullptr: there was none

  mutable std::vector<uint8_t> sources = {}; // by ValueId: 1 + its ValueSource, 0 if not asked for yet

  FunctionFacts facts = facts_of(function);

  // nullptr if it is not a real instruction.
  const Form* form(InstructionId id) const { return facts.instructions[id.index()].form; }
  // The only register that it writes; invalid if it writes several or none.
  ValueId result(InstructionId id) const { return facts.instructions[id.index()].result; }
  // Its index-th operand after the destinations, groups counted as one; nullptr if there are fewer.
  const Operand* source(InstructionId id, size_t index) const {
    const InstructionFacts& known = facts.instructions[id.index()];
    if (index >= known.sources.size()) return find_source(id, index);
    const uint8_t place = known.sources[index];
    if (place >= InstructionFacts::distant)
      return place == InstructionFacts::distant ? find_source(id, index) : nullptr;
    return &function.operands_of(id)[place];
  }
  const Operand* find_source(InstructionId id, size_t index) const;
  // The only instruction that computes the operand, if the operand is a register.
  InstructionId definition(const Operand* operand) const;
  bool is_literal(const Operand* operand) const;
  // True if the last operand is a literal; for bit fields, both position and length.
  bool last_is_literal(InstructionId id) const;
  ValueSource source_of(ValueId value) const {
    if (sources.empty()) sources.resize(function.values.size());
    uint8_t& known = sources[value.index()];
    if (known == 0) known = static_cast<uint8_t>(1 + static_cast<uint8_t>(find_source_of(value)));
    return static_cast<ValueSource>(known - 1);
  }
  // The parameter or variable that the value is a copy of; most others are their own.
  ValueId root_of(ValueId value) const;
  // Number of 32-bit registers that the value needs if it is in registers.
  unsigned words_of(ValueId value) const;
  bool is_global_variable(SymbolRef symbol) const;
  // True if the instruction reads the value only as (part of) a memory address.
  bool reads_as_address(InstructionId reader, ValueId value) const;
  bool same_block(InstructionId a, InstructionId b) const {
    return function.instructions[a].block == function.instructions[b].block;
  }

  bool is_uniform(InstructionId id) const { return id.index() < uniform.size() && uniform[id.index()]; }

  // Adds moves of a constant into a register before the instruction; unrolled copies of the instruction share them.
  void move_constant(InstructionId id, uint16_t times = 1) {
    costs[id.index()].weight += times;
    constant_moves[id] += times;
  }

  ValueSource find_source_of(ValueId value) const;

  std::vector<InstructionId> listed = {}; // see list_needed()

  // To be called when `needed` and `in_section` are known, and again when they change.
  void list_needed() {
    listed.clear();
    for (BlockId block : function.layout) {
      if (!flow.reachable(block)) continue;
      for (InstructionId id : function.instructions_in(block))
        if (needed[id.index()] && form(id) && !in_section[id.index()]) listed.push_back(id); // linear rows have no form
    }
  }
  template <class Visit> void for_each_needed(Visit&& visit) const {
    for (InstructionId id : listed)
      visit(id);
  }
};

} // namespace ptxrewrite::ir
