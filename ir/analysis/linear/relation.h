// What an integer comparison of PTX says.
#pragma once

#include "ir/analysis/linear/expression.h"

#include <optional>

namespace ptxrewrite::ir {

// A comparison as PTX writes it: `a REL b`, or `b REL a` when reversed.
struct Relation {
  Comparison comparison = Comparison::equal;
  bool reversed = false;
};
// The relation of an integer or bit setp; nothing for words that are not one.
std::optional<Relation> relation_of(const Form& form);
// Holds where the relation does not.
Relation opposite(Relation relation);

} // namespace ptxrewrite::ir
