// Which functions of two modules are set beside each other, and their lines.
#pragma once

#include "evaluate/diff/diff_render.h"

namespace ptxrewrite::evaluate {

// Two files: functions meet by name, but a rewritten variant meets its original: the copy of the original that is kept
// beside it has nothing to show. What only the right side has comes last.
DifferenceReport compare_files(ModuleListing left, ModuleListing right);

// Before and after passes, of functions whose name matches the glob `selection`: functions keep their ids, whatever
// they are called afterwards. What a pass adds has an id of its own; where that is the unchanged original of a function
// that was rewritten under another name, it is no news.
DifferenceReport compare_rewritten(ModuleListing left, ModuleListing right, const std::string& selection);

} // namespace ptxrewrite::evaluate
