// Compares the machine instructions of kernels before and after a rewrite: the number for each line of PTX, and the
// totals by unit.
#pragma once

#include "evaluate/diff/diff_render.h"
#include "evaluate/lower/machine_listing.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// One kernel or function on both sides. A missing side is empty: its name is "".
struct MachinePair {
  MachineListing before, after;
};

// Functions with a body whose name matches `glob` on either side, in text order, matched by name. A rewritten variant
// (`//@ PASS original NAME`) is paired with its original, and the copy of the original that is kept beside it is left
// out.
std::vector<MachinePair> pair_machine_listings(const ir::Module& before, const ir::Module& after,
                                               const std::string& glob, const ir::Machine& machine,
                                               uint32_t compute_capability);

// The pairs' lines, each preceded by its machine instructions, as a difference for rendering (diff_render.h).
DifferenceReport machine_difference(const std::vector<MachinePair>& pairs);

// A table of machine instructions, registers and spills, followed by one of instructions by unit, before and after.
std::string machine_summary_text(const std::vector<MachinePair>& pairs, const Palette& palette);

// The same figures, in addition to the lines of difference_json().
nlohmann::ordered_json machine_difference_json(const std::vector<MachinePair>& pairs, const DifferenceReport& report);

} // namespace ptxrewrite::evaluate
