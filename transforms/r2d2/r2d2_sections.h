// Code for the four parts of a hardware-form kernel: coefficients, thread-index parts, block-index parts, linear rows.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "transforms/common/expression_writer.h"
#include "transforms/r2d2/r2d2_plan.h"

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::transforms::r2d2 {

// Sizes of the parts, in static instructions.
struct SectionSizes {
  size_t coefficient_instructions = 0, thread_instructions = 0, block_instructions = 0;
  size_t block_warp_instructions = 0; // with up to 16 rows of the same operation and index packed into one
  size_t coefficient_registers = 0, thread_registers = 0, block_registers = 0;
};

// The operands that a site reads: `lr + coefficient + immediate`; an offset that changes from trip to trip takes the
// coefficient's place.
struct SiteOperands {
  ir::ValueId linear;      // or the register of a join; for a uniform result, its coefficient register
  ir::Operand coefficient; // a value or none
  int64_t immediate = 0;
};

// A literal times an extended 32-bit value: mul.wide and an addition to 64 bits are one machine instruction, whereas
// the addition alone takes two.
struct WideProduct {
  ir::ExpressionId factor; // 32 bits
  int64_t literal = 1;
  bool is_signed = true;
};
std::optional<WideProduct> wide_product(const ir::ExpressionPool& pool, ir::ExpressionId expression);

// The amount that an increment grows by in each trip.
struct Step {
  ir::Operand value;               // of the increment's width; or the product's factor
  std::optional<WideProduct> wide; // of 64-bit increments
};

// Emits the sections and rows before the code; determines the operands of each site of the plan.
struct EmittedSections {
  SectionSizes sizes;
  std::vector<SiteOperands> sites; // by index in Plan::sites; without their offsets
  std::vector<Step> steps;         // by index in Plan::increments
};
EmittedSections emit_sections(ir::Function& function, const Plan& plan, ir::ExpressionPool& pool);

} // namespace ptxrewrite::transforms::r2d2
