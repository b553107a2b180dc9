// State shared by the fusion rules: analyses of the function being lowered, and the cost of each instruction so far.
// Private to ir/machine.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/machine/figures/pipe.h"
#include "ir/machine/prepare/value_flow.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

// Where the bits of a value are before any register holds them.
enum class ValueSource : uint8_t {
  computed,      // a register
  literal,       // in the instruction word
  constant_bank, // kernel parameters, .const variables, the launch's shape, and where global variables are
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
  std::vector<bool> absorbs;  // has taken over a producer, and has no operand left for another
  std::vector<bool> needed;   // not dead
  const DominatorTree& dominators;
  // By ValueId: the same value but for a constant that the accesses add, or that was computed before. Invalid: itself.
  std::vector<ValueId> without_constant;
  std::map<std::pair<ValueId, ValueId>, ValueId> sums; // of two values, the first one computed
  std::vector<bool> reads_sum;                         // by InstructionId: an operand is a sum of linear registers
  std::vector<bool> low_halves; // by ValueId, on machines of the first generation: see first_generation.h
  std::map<InstructionId, std::vector<Operand>> leaves = {}; // of logic that has taken other logic over
  std::set<ValueId> negated = {};                            // factors whose opposite has been computed
  std::set<ValueId> moved = {};      // factors from constant banks that have been moved into registers
  std::vector<bool> predicated = {}; // by BlockId: short, and skipped by a predicate instead of a branch
  std::map<WideProduct, InstructionId> wide_products = {}; // that have been computed, by the first mad.wide
  std::vector<bool> uniform = {};                          // by InstructionId: work of the uniform datapath on 32 bits
  // Of the instructions' costs: constants that come into registers in front of them.
  std::map<InstructionId, uint16_t> constant_moves = {};
  std::vector<bool> in_section = {}; // by InstructionId: of a hardware form, what is written there is executed

  // nullptr if the instruction is no real one.
  const Form* form(InstructionId id) const;
  // The one register it writes; invalid if it writes several or none.
  ValueId result(InstructionId id) const;
  // Its index-th operand behind the destinations, groups counted as one; nullptr if there are fewer.
  const Operand* source(InstructionId id, size_t index) const;
  // The instruction that alone computes the operand, if it is a register.
  InstructionId definition(const Operand* operand) const;
  bool is_literal(const Operand* operand) const;
  // The last operand; of bit fields, both the place and the length.
  bool last_is_literal(InstructionId id) const;
  ValueSource source_of(ValueId value) const;
  // Registers of 32 bits that hold the value, whoever keeps it.
  unsigned words_of(ValueId value) const;
  bool is_global_variable(SymbolRef symbol) const;
  // The instruction reads its result nowhere but as (part of) a memory address.
  bool reads_as_address(InstructionId reader, ValueId value) const;
  bool same_block(InstructionId a, InstructionId b) const {
    return function.instructions[a].block == function.instructions[b].block;
  }

  // In front of the instruction, a constant comes into a register; copies of the instruction find it there.
  void move_constant(InstructionId id, uint16_t times = 1) {
    costs[id.index()].weight += times;
    constant_moves[id] += times;
  }

  template <class Visit> void for_each_needed(Visit&& visit) const {
    for (BlockId block : function.layout) {
      if (!flow.reachable(block)) continue;
      for (InstructionId id : function.instructions_in(block))
        if (needed[id.index()] && form(id) && !in_section[id.index()]) visit(id); // rows have no form
    }
  }
};

} // namespace ptxrewrite::ir
