// The relation that an integer comparison of PTX tests.
#pragma once

#include "ir/analysis/linear/expression.h"

#include <optional>

namespace ptxrewrite::ir {

// A comparison as PTX writes it: `a REL b`, or `b REL a` when reversed.
struct Relation {
  Comparison comparison = Comparison::equal;
  bool reversed = false;
};
// The relation of an integer or bit setp; nullopt for other comparisons.
std::optional<Relation> relation_of(const Form& form);
// The negation: true where `relation` is false.
Relation opposite(Relation relation);

} // namespace ptxrewrite::ir
