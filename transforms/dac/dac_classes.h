// DAC's classification (dac-isca17 4.4, 4.6, 4.7): which values of a kernel are tuples that the affine warp computes
// for all threads of an SM at once, and which conditions choose among a value's tuples.
//
// scalar < block scalar < affine < not affine. The class of a value is the most general class of its operands, or of
// its reaching definitions; a join of threads that took different paths adds a divergent condition. An optimistic fixed
// point over SSA form.
//
// Stricter than the paper, these values are not affine, because real code would be executed incorrectly:
//   * a value read after a loop that threads leave after different numbers of trips has one tuple for each number;
//   * a loop in which the sides of a branch rejoin only in a later trip has threads in several trips at the same time;
//   * widening a 32-bit tuple is valid only if no thread's value wraps. LinearForms (ir/analysis/linear) provides the
//     obligations; those not proved for all launches are checked at launch, or assumed by the user.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/flow/divergent_joins.h"

#include <array>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::dac {

enum class TupleClass : uint8_t {
  unknown,      // not visited yet
  scalar,       // the same in all threads of the launch that are in the same trip
  block_scalar, // the same in all threads of a block
  affine,       // base + offsets * indices; for predicates: a comparison of such values
  none,
};
std::string_view spelling(TupleClass tuple_class);

constexpr unsigned condition_limit = 2; // per operand: four tuples (4.6)

// The affine stream's knowledge of a value.
struct AffineClass {
  TupleClass kind = TupleClass::unknown;
  bool modulo = false; // may be a mod tuple (4.4)
  uint8_t condition_count = 0;
  // Blocks where paths join, or instructions that choose (min, max, abs, selp, a guard). Sorted.
  std::array<uint64_t, condition_limit> conditions{};
  ir::LoopId varies_in; // the innermost loop in which the value changes from trip to trip
  // The reason for `none`.
  std::string_view reason;
  ir::InstructionId culprit;

  bool is_affine() const { return kind != TupleClass::none && kind != TupleClass::unknown; }
  // The same for all threads, regardless of the path taken.
  bool is_uniform() const { return kind == TupleClass::scalar && condition_count == 0; }
  bool operator==(const AffineClass&) const = default;
};

struct ClassOptions {
  bool assume_no_overflow = false;
  bool launch_checks = true; // unproved obligations may become launch predicates
};

class AffineClasses {
public:
  AffineClasses(ir::LinearForms& forms, const ClassOptions& options);

  const AffineClass& of(ir::ValueId value) const { return classes_[value.index()]; }
  // The class as read in a block, which may be outside the loop that defines the value.
  AffineClass at(ir::ValueId value, ir::BlockId block) const;
  // The class of an operand that is not a group: register, literal, special register or symbol.
  AffineClass of_operand(const ir::Operand& operand, ir::BlockId block) const;

  // Is the block's branch uniform for all threads of the launch that execute it? True without a branch.
  bool branch_is_uniform(ir::BlockId block) const;
  // Is it uniform for all threads of a block?
  bool branch_is_block_uniform(ir::BlockId block) const;

  // The obligations under which a widening instruction gives the correct tuple. Empty for other instructions.
  const std::set<ir::ObligationId>& obligations(ir::InstructionId instruction) const;
  // Is the obligation proved for all threads of any launch, so that the launch need not check it?
  bool proved_for_all(ir::ObligationId id) const;

  // Are all operands of the instruction scalar or affine, including its address or guard? (Fig. 6)
  bool is_potentially_affine(ir::InstructionId instruction) const;

  // Is the instruction, under another opcode, `rem` by a power of two?
  static bool is_mask(const ir::Function& function, ir::InstructionId instruction);
  // Is this `or` a sum, because no bit is set in both operands? obligations() includes the conditions for this.
  bool is_sum_by_or(ir::InstructionId instruction) const;

private:
  void find_joins();
  void find_desynchronised_loops();
  bool meets_in_later_trip(ir::BlockId branch, const ir::Loop& loop, ir::LoopId id) const;
  bool update_block(ir::BlockId block);
  bool set(ir::ValueId value, AffineClass fresh);
  AffineClass of_parameter(ir::BlockId block, uint32_t index) const;
  AffineClass of_result(ir::InstructionId id) const;
  AffineClass computed(ir::InstructionId id) const;
  AffineClass compute_predicate(ir::InstructionId id, const std::vector<AffineClass>& sources) const;
  AffineClass compute_tuple(ir::InstructionId id, const std::vector<AffineClass>& sources) const;
  AffineClass choose(ir::InstructionId id, const AffineClass& a, const AffineClass& b) const;
  AffineClass remainder(ir::InstructionId id, const AffineClass& dividend, const AffineClass& divisor) const;
  AffineClass widened(ir::InstructionId id, AffineClass result, const AffineClass& narrow) const;
  std::string_view why_not_widened(ir::InstructionId id) const;
  bool dischargeable(ir::ObligationId id) const;
  bool is_described(const ir::LinearForm& form) const;
  AffineClass none(std::string_view reason, ir::InstructionId culprit) const;
  // The more general class of both, with the conditions of both.
  AffineClass join(const AffineClass& a, const AffineClass& b, ir::InstructionId where) const;
  AffineClass with_condition(AffineClass row, uint64_t condition, ir::InstructionId where) const;
  bool exits_are_uniform(ir::LoopId loop) const;
  bool joins_divergent_ways(ir::BlockId block) const;

  ir::LinearForms& forms_;
  const ir::Function& function_;
  ClassOptions options_;
  ir::PostDominatorTree post_dominators_;
  std::vector<AffineClass> classes_;                            // by ValueId
  std::vector<std::vector<ir::BlockId>> deciding_;              // by BlockId: branches whose paths join there
  std::vector<bool> desynchronised_;                            // by LoopId: its threads may be in different trips
  mutable std::vector<std::set<ir::ObligationId>> obligations_; // by InstructionId
};

} // namespace ptxrewrite::transforms::dac
