// Control flow and guards under predicates that are known.
#pragma once

#include "ir/core/function.h"

#include <map>

namespace ptxrewrite::ir {

using KnownPredicates = std::map<ValueId, bool>;
// Values in whose places others are read. May be chained.
using Replacements = std::map<ValueId, ValueId>;

// Drops guards that hold, instructions whose guard does not, and makes branches plain jumps or nothing. Instructions
// that are dropped leave their old values behind: `replacements` says so. True if anything changed.
bool fold_guards(Function& function, const KnownPredicates& known, Replacements& replacements);

// Takes blocks out of the layout that control cannot reach. How many.
size_t remove_unreachable_blocks(Function& function);

// Block parameters that one value alone arrives for.
void find_needless_parameters(const Function& function, Replacements& replacements);

// Jumps to the block that comes next anyway.
bool remove_needless_jumps(Function& function);

// Carries out replacements in operands, guards and edge arguments. True if anything changed.
bool replace(Function& function, const Replacements& replacements);

} // namespace ptxrewrite::ir
