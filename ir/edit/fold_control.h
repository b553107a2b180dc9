// Simplifies control flow and guards whose predicates are known.
#pragma once

#include "ir/core/function.h"

#include <map>

namespace ptxrewrite::ir {

using KnownPredicates = std::map<ValueId, bool>;
// Maps a value to the value that replaces it. May form chains.
using Replacements = std::map<ValueId, ValueId>;

// Drops guards that are true and instructions whose guard is false, and resolves conditional branches. `replacements`
// gets the old values for definitions of dropped instructions. Returns true if anything changed.
bool fold_guards(Function& function, const KnownPredicates& known, Replacements& replacements);

// Removes unreachable blocks from the layout. Returns their number.
size_t remove_unreachable_blocks(Function& function);

// Finds block parameters that receive the same value on all edges.
void find_needless_parameters(const Function& function, Replacements& replacements);

// Removes jumps to the next block of the layout. Returns true if anything changed.
bool remove_needless_jumps(Function& function);

// Applies replacements to operands, guards and edge arguments. Returns true if anything changed.
bool replace(Function& function, const Replacements& replacements);

} // namespace ptxrewrite::ir
