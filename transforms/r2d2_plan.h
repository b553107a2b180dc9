// What R2D2 would precompute in one kernel: which addresses and values, in which linear registers, and what it saves.
//
// A site is a place where a linear form is used: the address of a memory access, or an instruction whose result has a
// linear form and is read by others than linear instructions. Sites whose forms differ only in the constant share one
// linear register (paper §3.1.4); at most `limit` registers are kept, those that save the most.
#pragma once

#include "ir/analysis/linear.h"
#include "ir/function.h"
#include "transforms/pass.h"

#include <array>
#include <vector>

namespace ptxrewrite::transforms::r2d2 {

struct Site {
  static constexpr uint32_t whole_result = UINT32_MAX;

  ir::InstructionId instruction;
  uint32_t address = whole_result; // index of the address operand, or the instruction's one result is the site
  uint8_t width = 0;               // bits of the form: 32 or 64
  // The address operand's own offset included.
  std::array<ir::ExpressionId, ir::FormIndex::count> coefficients{};
  std::vector<ir::ObligationId> obligations;
  uint32_t group = UINT32_MAX;
};

// One linear register.
struct Group {
  uint8_t width = 0;
  // Coefficients of the thread and block indices; place 0, the constant, is the addend kept in the block part: the
  // simplest of the sites' constants, without its literal.
  std::array<ir::ExpressionId, ir::FormIndex::count> coefficients{};
  std::vector<uint32_t> sites;
  double saving =
      0; // dynamic instructions, loop depth weighted, that only this group's sites make superfluous or shared

  bool has_thread_part(const ir::ExpressionPool& pool) const;
  bool has_block_indices(const ir::ExpressionPool& pool) const;
};

struct Plan {
  std::vector<Site> sites; // of the kept groups, in program order
  std::vector<Group> groups;
  size_t dropped_by_limit = 0;
  size_t removed_instructions = 0; // static
  double removed_weight = 0;       // loop depth weighted, moves that replace results taken off
};

struct PlanOptions {
  unsigned limit = 16;
  bool launch_checks = true; // an obligation may be left to the launch
  bool assume_no_overflow = false;
};

// Reports what it dropped or could not use as remarks.
Plan make_plan(ir::LinearForms& forms, const PlanOptions& options, PassContext& context);

// The sum without its literal, and the literal, read as signed.
struct SplitConstant {
  ir::ExpressionId symbolic;
  int64_t literal = 0;
};
SplitConstant split_constant(ir::ExpressionPool& pool, ir::ExpressionId sum);

// 10 for each loop around the block, up to 10^6: how often an instruction runs, for choosing.
double execution_weight(const ir::LoopForest& loops, ir::BlockId block);

// Where an address operand's base and offset may be replaced by a register: plain loads, stores and atomics.
// The index of the address operand, or nothing.
std::optional<size_t> rewritable_address(const ir::Function& function, ir::InstructionId instruction);

} // namespace ptxrewrite::transforms::r2d2
