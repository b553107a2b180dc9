#include "support/text/bar_chart.h"

#include "support/text/html_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace ptxrewrite {
namespace {

constexpr double bar_height = 18, bar_gap = 6, bar_width = 400, text_width = 300;
constexpr double letter_width = 7.5, least_label_width = 80;

double length(const Bar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0,
                         [](double sum, const BarPart& part) { return sum + part.value; });
}

double label_width(std::span<const Bar> bars) {
  double width = least_label_width;
  for (const Bar& bar : bars)
    width = std::max(width, static_cast<double>(bar.label.size()) * letter_width);
  return width + 8;
}

} // namespace

std::string bar_chart(std::span<const Bar> bars) {
  double longest = 0;
  for (const Bar& bar : bars)
    longest = std::max(longest, length(bar));
  const double left = label_width(bars), width = left + bar_width + text_width;
  const double height = static_cast<double>(bars.size()) * (bar_height + bar_gap) + 4;
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" font-size=\"12\" fill=\"currentColor\" role=\"img\">\n",
                  width, height);
  double y = 2;
  for (const Bar& bar : bars) {
    const double text_y = y + bar_height - 5;
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 8, text_y, escaped(bar.label));
    double x = left;
    for (const BarPart& part : bar.parts) {
      const double part_width = longest > 0 ? part.value / longest * bar_width : 0;
      out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{}: "
                         "{:.4g}</title></rect>\n",
                         x, y, part_width, bar_height, part.colour, escaped(part.name), part.value);
      x += part_width;
    }
    out += fmt::format("<text x=\"{:.2f}\" y=\"{}\">{}</text>\n", x + 6, text_y, escaped(bar.text));
    y += bar_height + bar_gap;
  }
  return out + "</svg>\n";
}

std::string legend(std::span<const Bar> bars) {
  std::string out = "<p class=\"legend\">";
  std::set<std::string> named;
  for (const Bar& bar : bars)
    for (const BarPart& part : bar.parts)
      if (named.insert(part.name).second)
        out += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", part.colour, escaped(part.name));
  return out + "</p>\n";
}

} // namespace ptxrewrite
