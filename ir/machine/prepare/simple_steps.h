// Expansion of funnel shifts, three-input logic, byte permutations and bit fields for a machine that has only shifts
// and logic on two inputs. The expansion is PTX, so that the same steps are counted (first_generation.h) and emitted
// (the hardware form of `composite`).
#pragma once

#include "ir/core/function.h"

#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

struct StepOperand {
  enum class Kind : uint8_t { input, step, literal };
  Kind kind = Kind::literal;
  uint32_t index = 0; // of the instruction's source, or of an earlier step
  int64_t literal = 0;

  static StepOperand input(uint32_t index) { return {Kind::input, index, 0}; }
  static StepOperand step(uint32_t index) { return {Kind::step, index, 0}; }
  static StepOperand number(int64_t value) { return {Kind::literal, 0, value}; }
  bool operator==(const StepOperand&) const = default;
};

// One PTX instruction on 32 bits with two sources.
struct SimpleStep {
  std::string_view mnemonic; // "and.b32"
  StepOperand a, b;
};

// The last step computes the instruction's result. `sources`: the operands after the destination, one each.
// Empty if the instruction is none of these, if an operand selects the operation at run time, or if no work is
// needed.
std::vector<SimpleStep> simple_steps(const Form& form, std::span<const Operand> sources);

} // namespace ptxrewrite::ir
