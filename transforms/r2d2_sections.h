// Code for the four parts of a hardware-form kernel: coefficients, thread-index parts, block-index parts, linear rows.
#pragma once

#include "ir/analysis/expression.h"
#include "ir/builder.h"
#include "transforms/r2d2_plan.h"

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::transforms::r2d2 {

// Turns launch-uniform expressions into instructions that write %cr registers, or general ones for code that every
// thread runs; equal expressions share one. Widths are kept: 32-bit nodes become 32-bit instructions, on the low half
// of a %cr.
class CoefficientWriter {
public:
  CoefficientWriter(ir::Function& function, ir::Builder& builder, ir::ExpressionPool& pool,
                    ir::RegisterClass register_class = ir::RegisterClass::coefficient)
      : function_(&function), builder_(&builder), pool_(&pool), register_class_(register_class) {}

  // Can the expression be computed before the kernel runs, by one thread and without a memory access?
  static bool expressible(const ir::ExpressionPool& pool, ir::ExpressionId id);

  // A literal comes back as an integer operand.
  ir::Operand write(ir::ExpressionId id);
  // The same, but a literal gets a register too.
  ir::Operand write_to_register(ir::ExpressionId id);

  uint32_t register_count() const { return next_; }
  size_t instruction_count() const { return instructions_; }

private:
  ir::Operand compute(ir::ExpressionId id);
  ir::Operand sum(ir::ExpressionId id);
  ir::Operand terms_of_sum(ir::ExpressionId id);
  std::optional<ir::ExpressionId> nearest_sum(ir::ExpressionId id);
  bool shares() const { return register_class_ == ir::RegisterClass::coefficient; }
  ir::Operand add_term(const ir::ExpressionTerm& term, unsigned width, std::optional<ir::Operand> addend);
  ir::Operand emit(const std::string& mnemonic, std::initializer_list<ir::Operand> sources);
  ir::ValueId new_register(unsigned width);

  ir::Function* function_;
  ir::Builder* builder_;
  ir::ExpressionPool* pool_;
  ir::RegisterClass register_class_;
  std::unordered_map<ir::ExpressionId, ir::Operand> written_;
  std::vector<ir::ExpressionId> sums_;                    // that were written
  std::map<std::vector<uint64_t>, ir::Operand> computed_; // by instruction
  uint32_t next_ = 0;
  size_t instructions_ = 0;
};

// Sizes of the parts, static instructions.
struct SectionSizes {
  size_t coefficient_instructions = 0, thread_instructions = 0, block_instructions = 0;
  size_t block_warp_instructions = 0; // with up to 16 rows of one operation and index packed into one
  size_t coefficient_registers = 0, thread_registers = 0, block_registers = 0;
};

// What a site reads: `lr + coefficient + immediate`, or with an offset that changes from trip to trip in the
// coefficient's place.
struct SiteOperands {
  ir::ValueId linear;      // or the register of a join; of a uniform result, its coefficient register
  ir::Operand coefficient; // a value, or else none
  int64_t immediate = 0;
};

// A literal times an extended 32-bit value: mul.wide and an addition to 64 bits are one machine instruction, where the
// addition alone is two.
struct WideProduct {
  ir::ExpressionId factor; // 32 bits
  int64_t literal = 1;
  bool is_signed = true;
};
std::optional<WideProduct> wide_product(const ir::ExpressionPool& pool, ir::ExpressionId expression);

// What an increment grows by in each trip.
struct Step {
  ir::Operand value;               // of the increment's width; or the product's factor
  std::optional<WideProduct> wide; // of 64-bit increments
};

// Emits the sections and rows in front of the code; gives each site of the plan its operands.
struct EmittedSections {
  SectionSizes sizes;
  std::vector<SiteOperands> sites; // by index in Plan::sites; without their offsets
  std::vector<Step> steps;         // by index in Plan::increments
};
EmittedSections emit_sections(ir::Function& function, const Plan& plan, ir::ExpressionPool& pool);

} // namespace ptxrewrite::transforms::r2d2
