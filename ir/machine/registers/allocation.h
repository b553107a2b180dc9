// Register allocation on SSA form: assigns a 32-bit machine register, or a predicate, to each value that a machine
// keeps in one (machine_values.h).
//
//   Result<Allocation> allocation = allocate_registers(function, {.compute_capability = 80, .register_limit = 64});
//   allocation->registers            // highest number in use + 1
//   allocation->first_register(v)    // of two for a value of 64 bits: an even number and the next one
//
// Values that one register can hold in turn, such as a block parameter and its arguments, share one if their live
// ranges allow; otherwise the edge copies (moves()). Vector operands of memory instructions are in consecutive
// registers; where this is impossible, in a temporary of the instruction. If there are too few registers, values are
// spilled to local memory or rematerialised, which adds instructions to the function (spill.h).
//
// Bundles are coloured in dominance order of their definitions, which for single registers without constraints needs no
// more than the maximum of live values (Hack et al.: interference graphs of SSA programs are chordal).
#pragma once

#include "ir/machine/registers/machine_values.h"
#include "support/result.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

struct AllocationOptions {
  uint32_t compute_capability = 80;
  uint32_t register_limit = 255;
  uint32_t predicate_limit = 7;
  // Values of one register of the text share one, so that the allocation can be expressed in the text's names.
  bool keep_names = false;
  // Values that get a register although their readers do not need it (they could read the operands instead).
  std::set<ValueId> apart = {};
};

// Consecutive registers for a vector operand at one instruction, if the elements are elsewhere.
struct VectorTemporary {
  InstructionId instruction;
  uint32_t operand = 0; // index of the group
  uint16_t first = 0;
  uint16_t count = 0;
};

// A copy of a value to another register: from an argument to its parameter on an edge, or from an old value to the
// destination of a guarded instruction, before it.
struct RegisterMove {
  EdgeId edge;               // valid: on this edge
  InstructionId instruction; // valid: before this instruction
  ValueId from;              // may have no register: a literal, a parameter
  ValueId to;
};

class Allocation {
public:
  static constexpr uint16_t no_register = UINT16_MAX;

  // For a predicate, the predicate's number. no_register for values that have none.
  uint16_t first_register(ValueId value) const {
    return value.index() < first_register_.size() ? first_register_[value.index()] : no_register;
  }
  uint32_t registers = 0;       // highest number in use + 1
  uint32_t predicates = 0;      //
  uint32_t live_registers = 0;  // maximum number live at one point, a lower bound for any allocation
  uint32_t live_predicates = 0; //
  std::vector<VectorTemporary> temporaries;
  std::vector<RegisterMove> moves;
  // Values that have a register although their readers do not need it; to be passed to MachineValues.
  std::set<ValueId> apart;
  // Values for which no register below the limit was found. Empty in the result of allocate_registers.
  std::vector<ValueId> unplaced;

  void place(ValueId value, uint16_t first) {
    if (first_register_.size() <= value.index()) first_register_.resize(value.index() + 1, no_register);
    first_register_[value.index()] = first;
  }

private:
  std::vector<uint16_t> first_register_;
};

// Lists values without a register in `unplaced`. With names kept, values of one name may still get two registers.
Allocation colour_registers(const Function& function, const MachineValues& values, const AllocationOptions& options);

// As colour_registers, but keeps values apart that share a name in the text and are live at the same time because
// instructions were absorbed by their readers. Returns an error if a value finds no register.
Result<Allocation> allocate_registers(const Function& function, const AllocationOptions& options);

// Operands that require consecutive registers: the elements of vectors of 32 bits and more, outside of moves.
struct VectorOperand {
  uint32_t operand = 0; // index of the group
  bool definition = false;
  uint32_t registers = 0; // of all elements together
  uint32_t alignment = 1; // of the first register's number
  struct Element {
    ValueId value; // invalid: a literal or `_`
    uint32_t offset = 0;
  };
  std::vector<Element> elements;
};
std::vector<VectorOperand> vector_operands(const Function& function, const MachineValues& values, InstructionId id);

// Values that need their own register if names are kept: `apart`; copies of predicates; and values whose readers would
// otherwise read a register in which another value of the same name has replaced the operand.
std::set<ValueId> apart_by_names(const Function& function, const ControlFlow& flow, uint32_t compute_capability,
                                 std::set<ValueId> apart);

// The smaller of the function's .maxnreg and `maximum` (0: none).
uint32_t register_limit_of(const Function& function, uint32_t maximum);

// Reports every error in an allocation, one sentence each; empty if it is valid. The rules are listed in
// allocation_verify.cpp.
std::vector<std::string> verify_allocation(const Function& function, const Allocation& allocation,
                                           const AllocationOptions& options);

} // namespace ptxrewrite::ir
