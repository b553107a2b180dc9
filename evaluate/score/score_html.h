// Scores as one self-contained page: charts as inline SVG, no scripts.
#pragma once

#include "evaluate/score/score.h"

#include <span>
#include <string>

namespace ptxrewrite::evaluate {

// By kernel and version: instructions, clocks, CPI stacks, energy; one roofline per machine.
std::string score_html(std::span<const ScoredFile> files);

} // namespace ptxrewrite::evaluate
