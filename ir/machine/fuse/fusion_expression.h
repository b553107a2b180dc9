// The names and functions of conditions and costs in fuse.def, which are C++ expressions on integers. Private to
// ir/machine.
//
// p the producer, r the reader that absorbs it, t the first reader of a chain, s the instruction of a term inside the
// pattern; k, m, n the values of literals; a, b, c operands or, for functions on instructions, their definitions;
// count: the number in the generation's column. Functions are listed in fusion_functions.def.
#pragma once

#include "ir/machine/fuse/constant_operands.h"
#include "ir/machine/fuse/fusion_pattern.h"
#include "ir/machine/fuse/uniform_base.h"
#include "ir/machine/fuse/wide_arithmetic.h"
#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <array>
#include <cstdint>

namespace ptxrewrite::ir {

// The bindings of a matched pattern.
struct FusionMatch {
  std::array<const Operand*, 6> operands{}; // by variable_index()
  InstructionId producer, reader, through, source;
  uint16_t count = 0;
};

struct FusionScope {
  const LoweringContext& context;
  const FusionMatch& match;
};

using FusionExpression = int64_t (*)(const FusionScope&);

namespace fusion_names {

struct FusionInstruction {
  const LoweringContext& context;
  InstructionId id; // none: functions of it are 0
};

struct FusionVariable {
  const FusionScope& scope;
  size_t index = 0; // variable_index()

  const Operand* operand() const { return scope.match.operands[index]; }
  // Of an integer literal; 0 for others.
  operator int64_t() const {
    const Operand* literal = operand();
    return literal && literal->is(OperandKind::integer) ? literal->immediate : 0;
  }
  operator FusionInstruction() const { return {scope.context, scope.context.definition(operand())}; }
};

#define INSTRUCTION(name, ...)                                                                                         \
  inline int64_t name(const FusionInstruction& of) {                                                                   \
    const LoweringContext& context = of.context;                                                                       \
    const InstructionId id = of.id;                                                                                    \
    return id && context.form(id) ? static_cast<int64_t>(__VA_ARGS__) : 0;                                             \
  }
#define OPERAND(name, ...)                                                                                             \
  inline int64_t name(const FusionVariable& of) {                                                                      \
    [[maybe_unused]] const LoweringContext& context = of.scope.context;                                                \
    const Operand* operand = of.operand();                                                                             \
    return static_cast<int64_t>(__VA_ARGS__);                                                                          \
  }
#define NUMBER(name, ...)                                                                                              \
  constexpr int64_t name(int64_t k) {                                                                                  \
    return static_cast<int64_t>(__VA_ARGS__);                                                                          \
  }
#include "ir/machine/fuse/fusion_functions.def"
#undef INSTRUCTION
#undef OPERAND
#undef NUMBER

inline bool is(const FusionInstruction& of, Opcode opcode) {
  return of.id && of.context.form(of.id) && of.context.form(of.id)->opcode == opcode;
}

} // namespace fusion_names

// A FusionExpression.
#define PTXREWRITE_FUSION_EXPRESSION(...)                                                                              \
  [](const FusionScope& scope) -> int64_t {                                                                            \
    using namespace fusion_names;                                                                                      \
    [[maybe_unused]] const FusionInstruction p{scope.context, scope.match.producer},                                   \
        r{scope.context, scope.match.reader}, t{scope.context, scope.match.through},                                   \
        s{scope.context, scope.match.source};                                                                          \
    [[maybe_unused]] const FusionVariable a{scope, variable_index('a')}, b{scope, variable_index('b')},                \
        c{scope, variable_index('c')}, k{scope, variable_index('k')}, m{scope, variable_index('m')},                   \
        n{scope, variable_index('n')};                                                                                 \
    [[maybe_unused]] const int64_t count = scope.match.count;                                                          \
    return static_cast<int64_t>(__VA_ARGS__);                                                                          \
  }

} // namespace ptxrewrite::ir
