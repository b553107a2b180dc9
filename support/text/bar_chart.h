// Horizontal bars of several parts as inline SVG, for pages that need nothing else.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ptxrewrite {

struct BarPart {
  std::string name; // shown where the mouse rests
  std::string colour;
  double value = 0; // none is negative; all bars of a chart have the same unit
};

struct Bar {
  std::string label; // before the bar
  std::vector<BarPart> parts;
  std::string text; // behind it
};

// All bars on one scale, the longest as wide as there is room.
std::string bar_chart(std::span<const Bar> bars);

// The names of the parts that some bar has, with their colours, in the order in which they are first met.
std::string legend(std::span<const Bar> bars);

} // namespace ptxrewrite
