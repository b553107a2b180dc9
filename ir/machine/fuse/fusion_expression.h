// Conditions and costs of fuse.def: C expressions on integers. Private to ir/machine.
//
// Names: p the producer, r the reader that absorbs it, t the first reader of a chain, s the instruction of a term
// inside the pattern; k, m, n the values of literals; a, b, c operands or, for functions on instructions, their
// definitions; count: the number in the generation's column. Functions are listed in fusion_functions.def.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

// The bindings of a matched pattern.
struct FusionMatch {
  std::array<const Operand*, 6> operands{}; // by variable_index()
  InstructionId producer, reader, through, source;
  uint16_t count = 0;
};

class FusionExpression {
public:
  FusionExpression() = default;
  // Appends a description of an error in the text to `error`. An empty text has value 1.
  FusionExpression(std::string_view text, std::string& error);

  int64_t value(const LoweringContext& context, const FusionMatch& match) const;

  enum class Kind : uint8_t { number, variable, role, count, unary, binary, choice, function };
  struct Node {
    Kind kind = Kind::number;
    char sign = 0;             // of an operator: + - * / % & | ^ ! < > and L (<=) G (>=) E (==) N (!=) A (&&) O (||)
    uint16_t function = 0;     // index into fusion_functions.def
    uint32_t opcode = 0;       // `is(x, opcode)`
    int64_t number = 0;        // its value, the index of the variable, or the letter of the role
    uint16_t operands[3] = {}; // indices of nodes
  };

private:
  friend class FusionExpressionReader;
  int64_t value(const LoweringContext& context, const FusionMatch& match, const Node& node) const;

  std::vector<Node> nodes_; // operands before their operators; empty: value 1
};

} // namespace ptxrewrite::ir
