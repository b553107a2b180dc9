// Charts and tables of a report's page.
#include "evaluate/report/page_parts.h"
#include "support/text/html_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ptxrewrite::evaluate {
namespace {

// Rounds up to 1, 2, 4, 5 or 8 times a power of ten, for the end of an axis.
double round_up(double value) {
  if (value <= 0) return 1;
  const double decade = std::pow(10, std::floor(std::log10(value)));
  for (double step : {1.0, 2.0, 4.0, 5.0, 8.0})
    if (value <= step * decade * (1 + 1e-9)) return step * decade;
  return 10 * decade;
}

// Lanes beside the boxes for edges that do not fall through: each edge takes the first lane that is free between its
// ends.
class EdgeLanes {
public:
  size_t take(size_t from, size_t to) {
    const size_t low = std::min(from, to), high = std::max(from, to);
    for (size_t lane = 0;; ++lane) {
      if (lane == lanes_.size()) lanes_.emplace_back();
      const bool is_free = std::ranges::none_of(
          lanes_[lane], [&](const auto& other) { return low <= other.second && other.first <= high; });
      if (!is_free) continue;
      lanes_[lane].emplace_back(low, high);
      return lane;
    }
  }
  size_t count() const { return lanes_.size(); }

private:
  std::vector<std::vector<std::pair<size_t, size_t>>> lanes_;
};

struct DrawnEdge {
  size_t from, to, lane;
  bool is_back;
  std::string text;
};

constexpr double box_width = 330, box_height = 46, box_gap = 24, lane_width = 12, label_room = 96;

std::string edge_path(const DrawnEdge& edge, double box_left, const std::vector<double>& top) {
  const double from = top[edge.from] + box_height - 8, to = top[edge.to] + 8;
  const double side = edge.is_back ? box_left : box_left + box_width;
  const double reach = (edge.is_back ? -1 : 1) * (14 + double(edge.lane) * lane_width);
  const double tip = edge.is_back ? -7 : 7;
  std::string out = fmt::format("<path class=\"edge\" d=\"M{0:.0f} {1:.0f}h{2:.0f}V{3:.0f}h{4:.0f}\"/>"
                                "<path fill=\"var(--soft)\" d=\"M{0:.0f} {3:.0f}l{5:.0f} -4v8z\"/>\n",
                                side, from, reach, to, -reach, tip);
  if (!edge.text.empty())
    out += fmt::format("<text class=\"soft\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n",
                       side + (edge.is_back ? -18 : 18), to - 6, edge.is_back ? "end" : "start", edge.text);
  return out;
}

} // namespace

std::string PageTable::html(std::string_view css) const {
  std::string out = fmt::format("<div class=\"scroll\"><table class=\"s {}\"><thead><tr>", css);
  for (const Column& column : columns)
    out +=
        fmt::format("<th scope=\"col\" class=\"{}{}\">{}</th>", column.is_number ? "" : "t ", column.css, column.head);
  out += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      out += row[i].starts_with("<td")
                 ? row[i]
                 : fmt::format("<td class=\"{}{}\">{}</td>", columns[i].is_number ? "" : "t ", columns[i].css, row[i]);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const size_t begin = text.find_first_not_of(space);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(space) + 1 - begin);
}

std::string bar_cell(double share, std::string_view text, double key) {
  return fmt::format("<td class=\"c\" style=\"--h:{:.1f}%\" data-k=\"{:.6g}\">{}</td>",
                     100 * std::clamp(share, 0.0, 1.0), key, text);
}

std::string curve_chart(const Curve& curve) {
  constexpr double left = 46, top = 12, width = 380, height = 150;
  if (curve.points.empty()) return {};
  double y_top = curve.y_top;
  for (const auto& [x, y] : curve.points)
    y_top = std::max(y_top, y);
  y_top = curve.y_top > 0 ? y_top : round_up(y_top);
  const double first = curve.points.front().first, last = std::max(curve.points.back().first, first + 1);
  auto at_x = [&](double x) { return left + width * (x - first) / (last - first); };
  auto at_y = [&](double y) { return top + height * (1 - y / y_top); };
  std::string line;
  double before = 0;
  for (const auto& [x, y] : curve.points) {
    if (curve.steps && !line.empty()) line += fmt::format("L{:.1f} {:.1f}", at_x(x), at_y(before));
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", at_x(x), at_y(y));
    before = y;
  }
  std::string out =
      fmt::format("<figure style=\"margin:0\"><h3>{}</h3>\n<svg viewBox=\"0 0 {} {}\" width=\"{}\" "
                  "role=\"img\" aria-label=\"{}\">\n",
                  escaped(curve.title), left + width + 24, top + height + 40, left + width + 24, escaped(curve.title));
  for (double part : {0.0, 0.5, 1.0})
    out += fmt::format("<path class=\"axis\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
                       "text-anchor=\"end\">{5:g}</text>\n",
                       left, at_y(part * y_top), left + width, left - 6, at_y(part * y_top) + 4, part * y_top);
  for (double part : {0.0, 0.5, 1.0}) {
    const double x = std::round(first + part * (last - first));
    out +=
        fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", at_x(x), top + height + 16, x);
  }
  out += fmt::format("<path class=\"area\" d=\"{}L{:.1f} {}L{:.1f} {}Z\"/><path class=\"ink\" d=\"{}\"/>\n", line,
                     at_x(last), top + height, at_x(first), top + height, line);
  if (!curve.mark.empty()) {
    const bool right = at_x(curve.marked_x) > left + width * 0.6;
    const double y = at_y(curve.marked_y);
    out += fmt::format("<circle class=\"mark\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
                       "text-anchor=\"{}\">{}</text>\n",
                       at_x(curve.marked_x), y, at_x(curve.marked_x) + (right ? -9 : 9), y < top + 20 ? y + 18 : y - 8,
                       right ? "end" : "start", escaped(curve.mark));
  }
  return out +
         fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} by {}</text></svg></figure>\n",
                     left + width / 2, top + height + 34, escaped(curve.y_name), escaped(curve.x_name));
}

std::string stack_bar(std::span<const StackPart> parts, double whole, std::span<const std::string> letters) {
  std::string out = "<div class=\"bar\" role=\"img\">";
  for (size_t i = 0; i < parts.size(); ++i) {
    const double per_cent = whole > 0 ? 100 * parts[i].value / whole : 0;
    out += fmt::format("<span style=\"width:{:.2f}%;background:var(--c{})\" title=\"{} {:.1f} %\">{}</span>", per_cent,
                       parts[i].colour, escaped(parts[i].name), per_cent, per_cent >= 2.5 ? letters[i] : "");
  }
  return out + "</div>\n";
}

std::string flow_chart(const KernelFacts& facts) {
  EdgeLanes forward, back;
  std::vector<DrawnEdge> edges;
  const std::vector<FlowBlock>& blocks = facts.blocks;
  uint64_t most = 1;
  for (size_t from = 0; from < blocks.size(); ++from) {
    most = std::max(most, blocks[from].issued);
    for (const FlowEdge& edge : blocks[from].edges) {
      const std::string text = edge.threads ? fmt::format("{}", *edge.threads) : "";
      const bool is_back = edge.to <= from, is_next = edge.to == from + 1;
      if (is_next && edge.falls_through) continue; // drawn between the boxes
      edges.push_back({from, edge.to, is_back ? back.take(from, edge.to) : forward.take(from, edge.to), is_back, text});
    }
  }
  const double left = 20 + double(back.count()) * lane_width + (back.count() ? label_room : 0);
  const double width = left + box_width + 20 + double(forward.count()) * lane_width + label_room;
  std::vector<double> top;
  for (size_t i = 0; i < blocks.size(); ++i)
    top.push_back(6 + double(i) * (box_height + box_gap));
  const double height = blocks.empty() ? 10 : top.back() + box_height + 8;
  std::string out = fmt::format("<div class=\"scroll\"><svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
                                "style=\"min-width:{2:.0f}px\" role=\"img\" aria-label=\"control flow\">\n",
                                width, height, std::min(width, 460.0));
  for (const DrawnEdge& edge : edges)
    out += edge_path(edge, left, top);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const FlowBlock& block = blocks[i];
    const double share = double(block.issued) / double(most);
    out += fmt::format("<rect class=\"box\" x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"{2:.0f}\" height=\"{3:.0f}\" "
                       "rx=\"4\"/><rect class=\"heat\" x=\"{4:.0f}\" y=\"{5:.0f}\" width=\"{6:.1f}\" height=\"5\"/>\n"
                       "<text x=\"{7:.0f}\" y=\"{8:.0f}\" font-weight=\"600\">{9}</text><text class=\"soft\" "
                       "x=\"{10:.0f}\" y=\"{8:.0f}\" text-anchor=\"end\">{11} warps</text><text class=\"soft\" "
                       "x=\"{7:.0f}\" y=\"{12:.0f}\">{13}{14} instructions, {15} issued</text>\n",
                       left, top[i], box_width, box_height, left + 1, top[i] + box_height - 6,
                       std::max(0.0, share * (box_width - 2)), left + 8, top[i] + 17, escaped(block.name),
                       left + box_width - 8, block.warps, top[i] + 33,
                       block.first_line ? fmt::format("lines {}-{}, ", block.first_line, block.last_line) : "",
                       block.instructions, block.issued);
    for (const FlowEdge& edge : block.edges)
      if (edge.falls_through && edge.to == i + 1) {
        const double x = left + box_width / 2, y = top[i] + box_height;
        out += fmt::format("<path class=\"edge\" stroke-dasharray=\"4 3\" d=\"M{0:.0f} {1:.0f}V{2:.0f}\"/><path "
                           "fill=\"var(--soft)\" d=\"M{0:.0f} {2:.0f}l-4 -7h8z\"/>",
                           x, y, y + box_gap);
        if (edge.threads)
          out +=
              fmt::format("<text class=\"soft\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", x + 9, y + 16, *edge.threads);
      }
  }
  return out + "</svg></div>\n";
}

} // namespace ptxrewrite::evaluate
