// What R2D2 would precompute in one kernel: which addresses and values, in which linear registers, and what it saves.
//
// A site is a place where a linear form is used: the address of a memory access, or an instruction whose result has a
// linear form and is read by others than linear instructions. Sites whose forms differ only in the constant share one
// linear register (paper §3.1.4); at most `limit` registers are kept, those that save the most.
//
// What changes from trip to trip of a loop is the linear register, which holds the first trip's value, plus an offset
// that is the same for all threads (paper §3.1.2). The offset lives in a general-purpose register: an increment, which
// all sites with these steps share, or a register of the kernel that counts in the same steps anyway.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"
#include "transforms/common/address_forms.h"
#include "transforms/manager/pass.h"

#include <array>
#include <vector>

namespace ptxrewrite::transforms::r2d2 {

constexpr uint32_t none = UINT32_MAX;

// A register for `sum of trip * step` over some loops around a place, outermost first: nought before the innermost of
// them (or the sum over the outer ones), one step more in each of its trips.
struct Increment {
  uint8_t width = 0;
  std::vector<ir::LoopOffset> chain;
  uint32_t parent = none; // the increment of the outer loops alone
};

// A general register that holds one of up to four linear forms, by the path that was taken: a parameter of `block` with
// a move at the end of each block that control comes from, or a move and one under `predicate`, behind its definition.
struct Join {
  uint8_t width = 0;
  ir::BlockId block;
  ir::ValueId predicate;           // where `block` is invalid
  std::vector<uint32_t> moves;     // sites: by incoming edge; or the one always done, and the one where it holds
  ir::ExpressionId first_constant; // of the first form
};

struct LinearSite {
  static constexpr uint32_t whole_result = UINT32_MAX;

  ir::InstructionId instruction;
  uint32_t address = whole_result; // index of the address operand, or the instruction's one result is the site
  uint8_t width = 0;               // bits of the form: 32 or 64
  // The address operand's own offset included; without what the increment or `counter` contributes.
  std::array<ir::ExpressionId, ir::FormIndex::count> coefficients{};
  std::vector<ir::LoopOffset> offsets; // outermost loop first
  std::vector<ir::ObligationId> obligations;
  uint32_t group = none;
  uint32_t increment = none; // where there are offsets: one of these two
  ir::ValueId counter;

  // Of results: the value is the same for all threads of the launch, a coefficient register has it, and there is no
  // group.
  bool uniform = false;
  // Of results: all that read it can name its linear register themselves, so that the move is no machine instruction.
  bool direct = false;

  uint32_t join = none; // reads that register in a linear one's place; has no group then
  // A site that is not in the code yet: a move into the register of this join, at the end of `block`.
  uint32_t moved_for = none;
  ir::BlockId block;

  bool moves() const { return !offsets.empty(); }
};

// One linear register.
struct Group {
  uint8_t width = 0;
  // Coefficients of the thread and block indices; place 0, the constant, is the addend kept in the block part: the
  // simplest of the sites' constants, without its literal.
  std::array<ir::ExpressionId, ir::FormIndex::count> coefficients{};
  // The operand has one place for a coefficient or an offset (paper §4.3): sites with an offset need the constant as it
  // is.
  bool fixed_constant = false;
  std::vector<uint32_t> sites;
  // Dynamic instructions, loop depth weighted, that only this group's sites make superfluous or shared.
  double saving = 0;

  bool has_thread_part(const ir::ExpressionPool& pool) const;
  bool has_block_indices(const ir::ExpressionPool& pool) const;
};

struct Plan {
  std::vector<LinearSite> sites; // of the kept groups, in program order; then moves
  std::vector<Group> groups;
  std::vector<Increment> increments; // parents first
  std::vector<Join> joins;
  size_t dropped_by_limit = 0;
  size_t removed_instructions = 0; // static
  double removed_weight = 0;       // loop depth weighted, what comes in their place taken off
};

struct PlanOptions {
  unsigned limit = 16;
  bool launch_checks = true; // an obligation may be left to the launch
  bool assume_no_overflow = false;
};

// Reports what it dropped or could not use as remarks.
Plan make_plan(ir::LinearForms& forms, const PlanOptions& options, PassContext& context);

} // namespace ptxrewrite::transforms::r2d2
