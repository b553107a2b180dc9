// Control flow and guards under predicates that are known.
#pragma once

#include "ir/function.h"

#include <map>

namespace ptxrewrite::transforms {

using KnownPredicates = std::map<ir::ValueId, bool>;
// Values in whose places others are read. May be chained.
using Replacements = std::map<ir::ValueId, ir::ValueId>;

// Drops guards that hold, instructions whose guard does not, and makes branches plain jumps or nothing. Instructions
// that are dropped leave their old values behind: `replacements` says so. True if anything changed.
bool fold_guards(ir::Function& function, const KnownPredicates& known, Replacements& replacements);

// Takes blocks out of the layout that control cannot reach. How many.
size_t remove_unreachable_blocks(ir::Function& function);

// Block parameters that one value alone arrives for.
void find_needless_parameters(const ir::Function& function, Replacements& replacements);

// Jumps to the block that comes next anyway.
bool remove_needless_jumps(ir::Function& function);

// Carries out replacements in operands, guards and edge arguments. True if anything changed.
bool replace(ir::Function& function, const Replacements& replacements);

} // namespace ptxrewrite::transforms
