// Operand patterns: the table's requirements on each operand of a form, with types resolved. Private to ir/isa*.cpp.
#pragma once

#include "ir/isa/isa_match.h"

#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace ptxrewrite::ir {

struct OperandPattern;

// One alternative for an operand.
struct Alternative {
  SummaryKind kind = SummaryKind::register_;
  ScalarType type = ScalarType::none; // of registers, for messages
  uint64_t types = 0;                 // bit per ScalarType: declared types of registers, or of an address base
  bool negatable = false;
  bool minus = false;
  bool minus_required = false;
  bool selector = false;
  bool unified = false;
  bool constant_base = false;
  bool symbol_base = true;
  table::ImmediateRule rule = table::ImmediateRule::any;
  const std::vector<int64_t>* values = nullptr; // of the table's term
  bool repeated = false;                        // vector: elements[0] describes all `count` elements
  bool literal_elements = false;                // vector: constants are allowed as elements (sources)
  bool sink_elements = false;                   // vector: `_` is allowed as an element
  uint16_t count = 0;                           // vector: elements
  std::vector<OperandPattern> elements;
};

struct OperandPattern {
  std::vector<Alternative> alternatives;
};

struct OperandShape {
  std::vector<OperandPattern> operands;
  unsigned definitions = 0;
  std::vector<const table::Row*> rows; // that have it
  bool rows_differ = false;            // the form's rows have several first versions or targets
};
bool operator==(const Alternative&, const Alternative&);
inline bool operator==(const OperandPattern& a, const OperandPattern& b) {
  return a.alternatives == b.alternatives;
}

bool fits(const OperandShape& shape, std::span<const OperandSummary> operands);

// The operand lists of a form, from the rows its modifiers match.
std::vector<OperandShape> compile_shapes(std::span<const table::Match> matches, std::span<const Modifier> words,
                                         StateSpace space);

} // namespace ptxrewrite::ir
