// DAC's classification (dac-isca17 4.4, 4.6, 4.7): which values of a kernel are tuples that the affine warp computes
// for all threads of an SM at once, and which conditions choose among a value's tuples.
//
// scalar < block scalar < affine < not affine. The type of a value is the most general one of what it is made of; of
// two or more reaching definitions as well, and where threads come together that took different ways, that join is a
// divergent condition. Optimistic over SSA form, to a fixed point.
//
// Beyond the paper, what would be wrong on real code is not affine:
//   * a value read behind a loop that threads leave after different numbers of trips has one tuple for each number;
//   * a loop in which the sides of a branch meet in a later trip only has threads of several trips under way at once;
//   * widening a 32-bit tuple is right only if no thread's value wraps. LinearForms says what has to hold for that
//     (linear forms, ir/analysis); what is not proved for the whole launch is left to it, or assumed by the user.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/flow/divergent_joins.h"

#include <array>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::dac {

enum class TupleClass : uint8_t {
  unknown,      // not met yet
  scalar,       // the same in all threads of the launch that are in the same trip
  block_scalar, // the same in all threads of a block
  affine,       // base + offsets * indices; of predicates: a comparison of such
  none,
};
std::string_view spelling(TupleClass tuple_class);

constexpr unsigned condition_limit = 2; // of an operand: four tuples (4.6)

// What the affine stream knows of a value.
struct AffineClass {
  TupleClass kind = TupleClass::unknown;
  bool modulo = false; // may be a mod tuple (4.4)
  uint8_t condition_count = 0;
  // Blocks where ways meet, or instructions that choose (min, max, abs, selp, a guard). Sorted.
  std::array<uint64_t, condition_limit> conditions{};
  ir::LoopId varies_in; // the innermost loop from trip to trip of which it changes
  // Of `none`: why.
  std::string_view reason;
  ir::InstructionId culprit;

  bool is_affine() const { return kind != TupleClass::none && kind != TupleClass::unknown; }
  // The same for all threads, whatever way they came.
  bool is_uniform() const { return kind == TupleClass::scalar && condition_count == 0; }
  bool operator==(const AffineClass&) const = default;
};

struct ClassOptions {
  bool assume_no_overflow = false;
  bool launch_checks = true; // what is not proved may become a launch predicate
};

class AffineClasses {
public:
  AffineClasses(ir::LinearForms& forms, const ClassOptions& options);

  const AffineClass& of(ir::ValueId value) const { return classes_[value.index()]; }
  // As read in a block, which may be outside the loop where the value is defined.
  AffineClass at(ir::ValueId value, ir::BlockId block) const;
  // Of an operand that is no group: register, literal, special register, symbol.
  AffineClass of_operand(const ir::Operand& operand, ir::BlockId block) const;

  // Do all threads of the launch that execute the block's branch go the same way? True without a branch.
  bool branch_is_uniform(ir::BlockId block) const;
  // Or all threads of a block?
  bool branch_is_block_uniform(ir::BlockId block) const;

  // What has to hold so that a widening instruction gives the right tuple. Empty for others.
  const std::set<ir::ObligationId>& obligations(ir::InstructionId instruction) const;
  // Must the obligation be checked at the launch, or is it proved for all threads of any launch?
  bool proved_for_all(ir::ObligationId id) const;

  // Does the instruction compute with scalars and affine values only, or name its memory or its way by them? (Fig. 6)
  bool is_potentially_affine(ir::InstructionId instruction) const;

  // Is this instruction, though another one, `rem` by a power of two?
  static bool is_mask(const ir::Function& function, ir::InstructionId instruction);
  // Is this `or` a sum, because no bit is set in both operands? What that rests on is among obligations().
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
  // The more general of both, their conditions together.
  AffineClass join(const AffineClass& a, const AffineClass& b, ir::InstructionId where) const;
  AffineClass with_condition(AffineClass row, uint64_t condition, ir::InstructionId where) const;
  bool exits_are_uniform(ir::LoopId loop) const;
  bool joins_divergent_ways(ir::BlockId block) const;

  ir::LinearForms& forms_;
  const ir::Function& function_;
  ClassOptions options_;
  ir::PostDominatorTree post_dominators_;
  std::vector<AffineClass> classes_;                            // by ValueId
  std::vector<std::vector<ir::BlockId>> deciding_;              // by BlockId: branches whose ways meet there
  std::vector<bool> desynchronised_;                            // by LoopId
  mutable std::vector<std::set<ir::ObligationId>> obligations_; // by InstructionId
};

} // namespace ptxrewrite::transforms::dac
