// Plans what R2D2 precomputes in one kernel: the addresses and values, their linear registers, and the saving.
//
// A site is a place where a linear form is used: the address of a memory access, or an instruction whose result has a
// linear form and is read by at least one nonlinear instruction. Sites whose forms differ only in the constant share
// one linear register (paper §3.1.4); at most `limit` registers are kept, those that save the most.
//
// An address that changes from trip to trip of a loop is the linear register, which holds the first trip's value, plus
// an offset that is the same for all threads (paper §3.1.2). The offset lives in a general-purpose register: an
// increment, which all sites with these steps share, or an existing register of the kernel that advances by the same
// steps.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"
#include "transforms/common/address_forms.h"
#include "transforms/manager/pass.h"

#include <array>
#include <vector>

namespace ptxrewrite::transforms::r2d2 {

constexpr uint32_t none = UINT32_MAX;

// A register for `sum of trip * step` over some enclosing loops of a site, outermost first: zero on entry to the
// innermost of them (or the sum over the outer ones), one step more after each of its trips.
struct Increment {
  uint8_t width = 0;
  std::vector<ir::LoopOffset> chain;
  uint32_t parent = none; // the increment for the outer loops alone
};

// A general register that holds one of up to four linear forms, depending on the path taken: a parameter of `block`
// with a move at the end of each predecessor, or, after the definition of `predicate`, a move and a second one guarded
// by it.
struct Join {
  uint8_t width = 0;
  ir::BlockId block;
  ir::ValueId predicate;           // used if `block` is invalid
  std::vector<uint32_t> moves;     // sites: by incoming edge, or the unconditional one and the one guarded by the
                                   // predicate
  ir::ExpressionId first_constant; // of the first form
};

struct LinearSite {
  static constexpr uint32_t whole_result = UINT32_MAX;

  ir::InstructionId instruction;
  uint32_t address = whole_result; // index of the address operand, or whole_result if the site is the instruction's
                                   // only result
  uint8_t width = 0;               // bits of the form: 32 or 64
  // Includes the address operand's own offset; excludes the contribution of the increment or `counter`.
  std::array<ir::ExpressionId, ir::form_index::count> coefficients{};
  std::vector<ir::LoopOffset> offsets; // outermost loop first
  std::vector<ir::ObligationId> obligations;
  uint32_t group = none;
  uint32_t increment = none; // one of these two is set if there are offsets
  ir::ValueId counter;

  // For results: the value is the same for all threads of the launch and lies in a coefficient register; the site has
  // no group.
  bool uniform = false;
  // For results: all readers can name the linear register as an operand, so that the move needs no machine instruction.
  bool direct = false;

  uint32_t join = none; // reads that register instead of a linear one; has no group then
  // Set for a site to be created: a move into the register of this join, at the end of `block`.
  uint32_t moved_for = none;
  ir::BlockId block;

  bool moves() const { return !offsets.empty(); }
};

// One linear register.
struct Group {
  uint8_t width = 0;
  // Coefficients of the thread and block indices; place 0, the constant, is the addend kept in the block part: the
  // simplest of the sites' constants, without its literal.
  std::array<ir::ExpressionId, ir::form_index::count> coefficients{};
  // The operand has one slot for either a coefficient or an offset (paper §4.3): sites with an offset need the exact
  // constant in the linear register.
  bool fixed_constant = false;
  std::vector<uint32_t> sites;
  // Dynamic instructions, weighted by loop depth, that only this group makes superfluous, plus its part of shared ones.
  double saving = 0;

  bool has_thread_part(const ir::ExpressionPool& pool) const;
  bool has_block_indices(const ir::ExpressionPool& pool) const;
};

struct Plan {
  std::vector<LinearSite> sites; // of the kept groups, in program order; followed by moves
  std::vector<Group> groups;
  std::vector<Increment> increments; // parents before children
  std::vector<Join> joins;
  size_t dropped_by_limit = 0;
  size_t removed_instructions = 0; // static
  double removed_weight = 0;       // weighted by loop depth, minus the weight of the replacements
};

struct PlanOptions {
  unsigned limit = 16;
  bool launch_checks = true; // obligations may be left to the launch
  bool assume_no_overflow = false;
};

// Remarks report what it dropped or could not use.
Plan make_plan(ir::LinearForms& forms, const PlanOptions& options, PassContext& context);

} // namespace ptxrewrite::transforms::r2d2
