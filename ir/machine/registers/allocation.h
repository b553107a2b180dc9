// Register allocation on SSA form: which machine register of 32 bits, or which predicate, holds each value that a
// machine keeps in one (machine_values.h).
//
//   Result<Allocation> allocation = allocate_registers(function, {.compute_capability = 80, .register_limit = 64});
//   allocation->registers            // one more than the highest number used
//   allocation->first_register(v)    // of two for a value of 64 bits: an even number and the next one
//
// Values that one register can hold in turn, such as a block parameter and its arguments, share one where their live
// ranges allow; elsewhere the edge copies (moves()). Vector operands of memory instructions stand in neighbouring
// registers; where that cannot be, a temporary of the instruction does. Where there are too few registers, values wait
// in local memory or are computed again: the function then gets instructions (spill.h).
//
// Colouring follows the dominance order of the definitions, which for single registers without constraints needs no
// more of them than are live at the worst place (Hack et al.: interference graphs of SSA programs are chordal).
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
  // Values of one register of the text share one, so that the allocation can be told in terms of the text.
  bool keep_names = false;
  // Values that get a register of their own even if their readers could do without.
  std::set<ValueId> apart = {};
};

// At an instruction: registers in a row that stand for a vector operand whose values lie elsewhere.
struct VectorTemporary {
  InstructionId instruction;
  uint32_t operand = 0; // index of the group
  uint16_t first = 0;
  uint16_t count = 0;
};

// A value that moves to another register: an argument to its parameter on an edge, or what a guarded instruction keeps
// to its destination, in front of it.
struct RegisterMove {
  EdgeId edge;               // or:
  InstructionId instruction; //
  ValueId from;              // may be in no register: a literal, a parameter
  ValueId to;
};

class Allocation {
public:
  static constexpr uint16_t no_register = UINT16_MAX;

  // Of predicates, the number of the predicate. no_register for values that are in none.
  uint16_t first_register(ValueId value) const {
    return value.index() < first_register_.size() ? first_register_[value.index()] : no_register;
  }
  uint32_t registers = 0;       // one more than the highest one used
  uint32_t predicates = 0;      //
  uint32_t live_registers = 0;  // most that are live at one place: no allocation needs less
  uint32_t live_predicates = 0; //
  std::vector<VectorTemporary> temporaries;
  std::vector<RegisterMove> moves;
  // Values that have a register although their readers could do without; MachineValues wants to know them.
  std::set<ValueId> apart;
  // Values that found no register below the limit. Empty in what allocate_registers returns.
  std::vector<ValueId> unplaced;

  void place(ValueId value, uint16_t first) {
    if (first_register_.size() <= value.index()) first_register_.resize(value.index() + 1, no_register);
    first_register_[value.index()] = first;
  }

private:
  std::vector<uint16_t> first_register_;
};

// What finds no register is listed in `unplaced`. With names kept, values of one name may still get two registers.
Allocation colour_registers(const Function& function, const MachineValues& values, const AllocationOptions& options);

// As colour_registers, with values kept apart that share a name in the text but live at the same time once their
// readers take over other instructions' work. An error if something finds no register.
Result<Allocation> allocate_registers(const Function& function, const AllocationOptions& options);

// Operands that must lie in neighbouring registers: the elements of vectors of 32 bits and more, outside of moves.
struct VectorOperand {
  uint32_t operand = 0; // index of the group
  bool definition = false;
  uint32_t registers = 0; // of all elements together
  uint32_t alignment = 1; // of the first one's number
  struct Element {
    ValueId value; // invalid: a literal or `_`
    uint32_t offset = 0;
  };
  std::vector<Element> elements;
};
std::vector<VectorOperand> vector_operands(const Function& function, const MachineValues& values, InstructionId id);

// What has a register of its own where names are kept: `apart`; copies of predicates; and values whose readers would
// read what another value of the same name has replaced by then.
std::set<ValueId> apart_by_names(const Function& function, const ControlFlow& flow, uint32_t compute_capability,
                                 std::set<ValueId> apart);

// .maxnreg of the function, and an upper bound from elsewhere (0: none).
uint32_t register_limit_of(const Function& function, uint32_t maximum);

// Everything that is wrong with an allocation, as one sentence each; empty if it is right. The rules are listed in
// allocation_verify.cpp.
std::vector<std::string> verify_allocation(const Function& function, const Allocation& allocation,
                                           const AllocationOptions& options);

} // namespace ptxrewrite::ir
