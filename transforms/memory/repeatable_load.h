// Read-only loads that may be executed once instead of several times.
#pragma once

#include "transforms/memory/workspace.h"

#include <optional>
#include <tuple>
#include <vector>

namespace ptxrewrite::transforms::memory {

struct Load {
  ir::InstructionId instruction;
  ir::ValueId base;
  int64_t offset = 0;
  std::vector<ir::ValueId> elements;
};

// Loads with equal keys read the same bytes.
using LoadKey = std::tuple<uint32_t, int64_t, uint32_t>; // base, offset, form
LoadKey key_of(const ir::Function& function, const Load& load);

// The load, if it is unguarded, its data do not change while the kernel runs, and its address is one register.
std::optional<Load> repeatable_load(const Workspace& workspace, ir::InstructionId id);
// Do the results have the same widths, one by one?
bool have_same_widths(const ir::Function& function, const Load& a, const Load& b);
// Replaces a load by moves of the results of one that dominates it.
void copy_from_load(Workspace& workspace, const Load& later, const Load& earlier);

// Hoists loads of one address from several control-flow paths above the branch where the paths diverge, under the
// launch predicate that one of the paths is taken. Returns the number of loads that it replaced.
size_t load_before_branches(Workspace& workspace);

} // namespace ptxrewrite::transforms::memory
