#include "ir/machine/figures/special_work.h"

#include <algorithm>

namespace ptxrewrite::ir {
namespace {

// Division by a non-literal uses a floating-point reciprocal: conversion to float, reciprocal, conversion back.
constexpr uint16_t by_reciprocal = 3;
constexpr uint16_t most_by_literal = 11; // instructions of a division by a 32-bit literal

uint16_t of_division(const Form& form, uint16_t weight) {
  const bool floating = form.kind != InstructionClass::integer;
  if (floating) return 1;
  const bool literal = bit_width(form.type(0)) == 32 && weight <= most_by_literal;
  return literal ? 0 : by_reciprocal;
}

uint16_t count_of(const Form& form, const InstructionCost& cost) {
  const bool wide = bit_width(form.type(0)) == 64;
  switch (form.opcode) {
  case Opcode::div:
  case Opcode::rem:
    return of_division(form, cost.weight);
  case Opcode::rcp:
  case Opcode::sqrt:
  case Opcode::rsqrt:
  case Opcode::sin:
  case Opcode::cos:
  case Opcode::ex2:
  case Opcode::lg2:
  case Opcode::tanh:
  case Opcode::clz:
    return 1;
  case Opcode::bfind:
  case Opcode::popc:
  case Opcode::brev:
    return wide ? 2 : 1;
  default:
    // Conversions between integers are arithmetic, as are some of half precision.
    return form.kind == InstructionClass::conversion && cost.pipe == Pipe::special ? 1 : 0;
  }
}

} // namespace

uint16_t special_instructions(const Form& form, const InstructionCost& cost) {
  return std::min(count_of(form, cost), cost.weight);
}

} // namespace ptxrewrite::ir
