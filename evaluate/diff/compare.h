// Matches the functions of two modules, and compares their lines.
#pragma once

#include "evaluate/diff/diff_render.h"

namespace ptxrewrite::evaluate {

// For two files: matches functions by name, but a rewritten variant with its original; the copy of the original that is
// kept beside the variant is not shown. Functions that exist only on the right come last.
DifferenceReport compare_files(ModuleListing left, ModuleListing right);

// For the state before and after passes, of functions whose name matches the glob `selection`: matches functions by ID,
// even if renamed. Functions that a pass adds have new IDs; the unchanged copy of an original that was rewritten under
// another name is not shown.
DifferenceReport compare_rewritten(ModuleListing left, ModuleListing right, const std::string& selection);

} // namespace ptxrewrite::evaluate
