// The machine instructions of kernels before and after a rewrite: which lines of PTX cost how many of them, and what
// the kernel has of each unit in all.
#pragma once

#include "evaluate/diff/diff_render.h"
#include "evaluate/lower/machine_listing.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// One kernel or function on both sides. A side without it is empty: its name is "".
struct MachinePair {
  MachineListing before, after;
};

// Functions with a body whose name matches `glob` on either side, in the order of the texts. Names are matched; a
// rewritten variant (`//@ PASS original NAME`) is paired with its original, and the copy of the original beside it is
// left out.
std::vector<MachinePair> pair_machine_listings(const ir::Module& before, const ir::Module& after,
                                               const std::string& glob, const ir::Machine& machine,
                                               uint32_t compute_capability);

// The pairs' lines, each with its machine instructions in front, as a difference to be rendered (diff_render.h).
DifferenceReport machine_difference(const std::vector<MachinePair>& pairs);

// A table of machine instructions, registers and spills, then one of instructions by unit, before and after.
std::string machine_summary_text(const std::vector<MachinePair>& pairs, const Palette& palette);

// The same figures, beside the lines that difference_json() gives.
nlohmann::ordered_json machine_difference_json(const std::vector<MachinePair>& pairs, const DifferenceReport& report);

} // namespace ptxrewrite::evaluate
