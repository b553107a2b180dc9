// Generates instructions for launch-uniform expressions: coefficients of linear forms, as code that runs before a
// kernel or in it.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "ir/core/builder.h"
#include "ir/core/module.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::transforms {

// Adds a new 64-bit register of a hardware class; these classes have no narrower registers.
ir::ValueId add_hardware_register(ir::Function& function, ir::RegisterClass register_class, std::string_view prefix,
                                  uint32_t number);

// Generates instructions that compute launch-uniform expressions in %cr registers, or in general registers for code
// that every thread runs. Equal expressions share a register. Widths are kept: 32-bit nodes become 32-bit instructions
// that use the low half of a %cr.
class CoefficientWriter {
public:
  CoefficientWriter(ir::Function& function, ir::Builder& builder, ir::ExpressionPool& pool,
                    ir::RegisterClass register_class = ir::RegisterClass::coefficient)
      : function_(&function), builder_(&builder), pool_(&pool), register_class_(register_class) {}

  // Can the expression be computed before the kernel runs, by one thread and without a memory access?
  static bool expressible(const ir::ExpressionPool& pool, ir::ExpressionId id);

  // Returns a literal as an integer operand.
  ir::Operand write(ir::ExpressionId id);
  // The same, but moves a literal into a register too.
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
  std::vector<ir::ExpressionId> sums_;                    // already written
  std::map<std::vector<uint64_t>, ir::Operand> computed_; // by instruction
  uint32_t next_ = 0;
  size_t instructions_ = 0;
};

} // namespace ptxrewrite::transforms
