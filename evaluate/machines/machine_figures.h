// Static figures of each kernel before and after, as `opt --stats --gpu` shows them.
#pragma once

#include "ir/machine/figures/figures.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::evaluate {

// A table of the changes, one line per function of `after`; functions that exist only in `after` have no old figures.
std::string figures_text(const ir::FiguresByFunction& before, const ir::FiguresByFunction& after);
// {"name": {"before": {"instructions", "registers", "spilled_bytes"}, "after": {...}}}
nlohmann::ordered_json figures_json(const ir::FiguresByFunction& before, const ir::FiguresByFunction& after);

} // namespace ptxrewrite::evaluate
