// What the rules of the lowering ask of every instruction many times, found in one walk over a function that does not
// change any more. Private to ir/machine.
#pragma once

#include "ir/core/function.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

namespace ptxrewrite::ir {

struct InstructionFacts {
  static constexpr uint8_t no_source = UINT8_MAX, distant = UINT8_MAX - 1;

  const Form* form = nullptr; // nullptr: not a real instruction
  ValueId result;             // the only register that it writes; invalid if it writes several or none
  // The places of its first operands after the destinations among all its operands; `distant`: has to be looked up.
  std::array<uint8_t, 4> sources{no_source, no_source, no_source, no_source};
};

// Kinds of instruction that most functions lack, so that the rules for them need not look at each instruction.
struct FunctionContents {
  std::bitset<64> classes; // by InstructionClass
  bool divides = false;    // integers or other numbers
  bool accesses_vectors = false, accesses_shared = false;
  bool loads_anew = false;    // volatile or atomic loads
  bool guards_memory = false; // accesses and fences with a guard
  bool keeps_old_values = false;
  bool names_functions = false;
  bool names_variables = false;  // of the module
  bool has_linear_moves = false; // sums of linear registers
  bool has_long_floats = false;  // registers of type f64
  size_t predicates = 0;         // registers

  bool has(InstructionClass kind) const { return classes[static_cast<size_t>(kind)]; }
};

struct FunctionFacts {
  std::vector<InstructionFacts> instructions; // by InstructionId
  FunctionContents contents;                  // also counts what has been removed from the blocks
};

FunctionFacts facts_of(const Function& function);

} // namespace ptxrewrite::ir
