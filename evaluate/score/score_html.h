// Scores as one page that needs nothing else: pictures as inline SVG, no scripts.
#pragma once

#include "evaluate/score/score.h"

#include <span>
#include <string>

namespace ptxrewrite::evaluate {

// By kernel and version: instructions, clocks, CPI stacks, energy; a roofline by machine.
std::string score_html(std::span<const ScoredFile> files);

} // namespace ptxrewrite::evaluate
