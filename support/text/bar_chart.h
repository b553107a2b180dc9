// Horizontal stacked bars as inline SVG, for self-contained pages.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ptxrewrite {

struct BarPart {
  std::string name; // shown as tooltip
  std::string colour;
  double value = 0; // not negative; in the same unit for all bars of a chart
};

struct Bar {
  std::string label; // before the bar
  std::vector<BarPart> parts;
  std::string text; // after the bar
};

// All bars have the same scale; the longest fills the available width.
std::string bar_chart(std::span<const Bar> bars);

// The names and colours of all parts, in order of first occurrence.
std::string legend(std::span<const Bar> bars);

} // namespace ptxrewrite
