// The instruction roofline (Ding and Williams, PMBS 2019) of scored kernels as inline SVG: warp instructions per second
// over warp instructions per byte of DRAM, bounded by the machine's issue rate and its achieved bandwidth.
#pragma once

#include "evaluate/score/score.h"

#include <cstddef>
#include <span>
#include <string>

namespace ptxrewrite::evaluate {

// Labels of points: with many points, kernel names would cover them.
enum class RooflineNames : uint8_t { none, versions };

// For the files that were scored on this machine (at least one). Lines and letters have the colour of the page's text.
std::string roofline_chart(const ir::Machine& machine, std::span<const ScoredFile> files,
                           RooflineNames names = RooflineNames::none);

// The colour that identifies a version in charts; the baseline is 0.
std::string version_colour(size_t version);

} // namespace ptxrewrite::evaluate
