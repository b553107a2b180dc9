// The values of a kernel's registers, as terms over the launch, the thread and loaded values.
//
// Instruction semantics are those of the ISA manual's integer sections; values that are not modelled are separate
// unknowns (results of loads) or operations of which only "equal operands, equal result" is known (floating point).
// Induction registers have a closed form in the trip number of their loop: by ring laws, or guessed from the first trip
// and shown for the next one (if a counter is truncated and extended again, for the number of trips of the loop).
// Values that the two sides of a branch pass to their join are selected by the branch's condition. Other registers that
// depend on the path taken are unknowns, named by block and register.
#pragma once

#include "evaluate/prove/exact_forms.h"
#include "ir/core/function.h"
#include "ir/flow/loops.h"
#include "launch/predicate.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ptxrewrite::prove {

// Terms of an instruction's inputs: the guard first (if any), then operands in text order; an address is one term.
struct Observation {
  ir::InstructionId instruction;
  std::vector<TermId> terms;
};

// A register that holds, on entry to a block, the value passed by the edge taken: an unknown, which is the same in two
// kernels if all edges pass the same values.
struct PathUnknown {
  ir::BlockId block;
  uint32_t parameter = 0;
};

class SymbolicKernel {
public:
  // `parameter(index)`: the term of a kernel parameter without a name of its own; may be empty. The function must be in
  // SSA form. Limits of trip numbers are added to `bounds`.
  SymbolicKernel(const ir::Function& function, Terms& terms, Bounds& bounds, ExactForms& exact,
                 std::function<std::optional<TermId>(unsigned)> parameter);

  TermId value(ir::ValueId id) const { return values_[id.index()]; } // invalid if it is not a scalar of up to 64 bits
  const std::vector<Observation>& observations() const { return observations_; }
  const std::vector<PathUnknown>& path_unknowns() const { return unknowns_; }
  // Facts in a block after loops with one exit that is taken when a multiple of the trip number equals a value: the
  // equality holds, and it holds for the first time.
  std::vector<Assumption> known_in(ir::BlockId block);
  // Bits that are 1 in a block: conditions of branches of which only one side leads there, and the conditions under
  // which enclosing or finished loops continued after the previous trip.
  std::vector<TermId> conditions_of(ir::BlockId block);
  // The condition under which a block's branch takes its first successor; nothing without two successors.
  std::optional<TermId> condition(ir::BlockId block);
  const ir::LoopForest& loops() const { return loops_; }

private:
  void evaluate();
  void evaluate_block(ir::BlockId block);
  void evaluate_instruction(ir::InstructionId id);
  void define(ir::InstructionId id, size_t number, ir::ValueId definition, TermId term);
  bool find_inductions();
  std::set<AtomId> changing_in(const ir::Loop& loop);
  bool changes(TermId step, const std::set<AtomId>& changing);
  void close_inductions();
  bool guess_inductions();
  std::optional<TermId> guessed_step(const ir::Loop& loop, uint32_t parameter, const std::set<AtomId>& changing);
  bool next_trip_follows(const ir::Loop& loop, uint32_t parameter);
  void find_trip_limits();
  // The condition, as a function of the trip, under which the loop is not left at the end of the block; nothing if
  // another path around the loop bypasses the block, or if the block has no edge out of the loop.
  std::optional<TermId> goes_on(const ir::Loop& loop, ir::BlockId block);
  std::optional<TermId> joined(ir::BlockId block, uint32_t parameter);
  std::optional<bool> side_of(ir::BlockId branch, ir::EdgeId edge) const;
  std::optional<TermId> comparison(ir::InstructionId id, const ir::Form& form);
  TermId unknown(ir::InstructionId id, size_t number, unsigned width);
  std::optional<TermId> part_of_word(ir::InstructionId id, const ir::Form& form, size_t number, unsigned width);
  std::optional<TermId> joined_word(ir::InstructionId id, unsigned width);
  TermId operand(ir::InstructionId id, const ir::Operand& operand, unsigned width);
  std::optional<TermId> permuted(ir::InstructionId id);
  std::optional<TermId> dot_of_bytes(ir::InstructionId id, const ir::Form& form);
  std::optional<TermId> lane_mask(const std::string& name);
  TermId address(ir::InstructionId id, size_t group, ir::StateSpace space);
  std::optional<TermId> modelled(ir::InstructionId id, const ir::Form& form);
  std::optional<TermId> integer_operation(ir::InstructionId id, const ir::Form& form, unsigned width);
  std::optional<TermId> kernel_parameter(ir::InstructionId id, const ir::Form& form, size_t group, unsigned element,
                                         unsigned width);
  TermId parameter_bytes(unsigned index, int64_t byte, unsigned width) const;
  void observe(ir::InstructionId id, const ir::Form& form);
  std::string provenance(ir::InstructionId id) const;

  const ir::Function& function_;
  Terms& terms_;
  Bounds& bounds_;
  ExactForms& exact_;
  std::function<std::optional<TermId>(unsigned)> parameter_;
  ir::ControlFlow flow_;
  ir::DominatorTree dominators_;
  ir::LoopForest loops_;
  std::vector<TermId> values_;
  std::vector<ir::Operand> sources_; // of the current instruction, without definitions and old values
  std::vector<size_t> source_index_;
  std::map<std::pair<uint32_t, uint32_t>, TermId> inductions_; // by block and parameter
  std::map<AtomId, TermId> closed_;                            // terms that replace the unknowns of inductions
  std::map<uint32_t, unsigned> parameter_number_;              // by VariableId
  std::set<std::pair<uint32_t, uint32_t>> not_inductions_;     // wrong guesses
  std::vector<Observation> observations_;
  std::vector<PathUnknown> unknowns_;
};

// The term of a launch expression, an exact 128-bit integer. `parameter_bytes`: sizes of the kernel's parameters.
TermId launch_value(Terms& terms, const launch::LaunchExpression& expression,
                    const std::vector<unsigned>& parameter_bytes);

// The term of an exact expression over the caller's names, in 128 bits; nothing if `name` does not know one of the
// names.
std::optional<TermId> exact_value(Terms& terms, std::string_view text,
                                  const std::function<std::optional<TermId>(const std::string&)>& name);

// The unknown trip number of the loop with this header, in 64 bits, and its name.
TermId trip_number(Terms& terms, ir::BlockId header);
std::string trip_name(ir::BlockId header);
// The name of the unknown for a register that depends on the path to the block.
std::string path_name(ir::BlockId block, ir::ValueId value);

} // namespace ptxrewrite::prove
