#include "evaluate/score/score_roofline.h"

#include "support/text/html_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace ptxrewrite::evaluate {
namespace {

struct Point {
  double intensity = 0; // warp instructions per byte of DRAM; 0 without DRAM accesses
  double rate = 0;      // warp instructions per second
  size_t version = 0;
  std::string title;
};

std::vector<Point> points_of(const ir::Machine& machine, std::span<const ScoredFile> files) {
  std::vector<Point> points;
  for (const ScoredFile& file : files) {
    if (file.machine != &machine) continue;
    for (size_t version = 0; version < file.versions.size(); ++version)
      for (const ScoredKernel& kernel : file.versions[version].kernels) {
        if (kernel.seconds <= 0 || kernel.instructions <= 0) continue;
        points.push_back({kernel.dram_bytes > 0 ? kernel.instructions / kernel.dram_bytes : 0,
                          kernel.instructions / kernel.seconds, version,
                          fmt::format("{} {}: {}", file.file, kernel.kernel, file.versions[version].name)});
      }
  }
  return points;
}

// Range of whole decades on a logarithmic axis.
struct Axis {
  int low = 0, high = 1;
  double start = 0, length = 0; // in the picture; a negative length points upwards

  double at(double value) const {
    return start + length * std::clamp((std::log10(value) - low) / (high - low), 0.0, 1.0);
  }
};

Axis axis_around(double low, double high, double start, double length) {
  return {static_cast<int>(std::floor(std::log10(low))), static_cast<int>(std::ceil(std::log10(high))), start, length};
}

constexpr double left = 70, top = 30, width = 560, height = 340;

std::string grid(const Axis& x, const Axis& y) {
  std::string out;
  for (int decade = x.low; decade <= x.high; ++decade) {
    const double at = x.at(std::pow(10, decade));
    out += fmt::format(
        "<path stroke=\"currentColor\" stroke-opacity=\".15\" d=\"M{:.1f} {}V{}\"/><text x=\"{:.1f}\" y=\"{}\" "
        "text-anchor=\"middle\">{:g}</text>\n",
        at, top, top + height, at, top + height + 16, std::pow(10, decade));
  }
  for (int decade = y.low; decade <= y.high; ++decade) {
    const double at = y.at(std::pow(10, decade));
    out += fmt::format(
        "<path stroke=\"currentColor\" stroke-opacity=\".15\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{:g}</text>\n",
        left, at, left + width, left - 6, at + 4, std::pow(10, decade) / 1e9);
  }
  return out + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">warp instructions per byte of DRAM</text>\n"
                           "<text x=\"{}\" y=\"12\">G warp instructions per second</text>\n",
                           left + width / 2, top + height + 34, left - 60);
}

std::string roof(double peak, double bandwidth, const Axis& x, const Axis& y) {
  const double first = std::pow(10, x.low), last = std::pow(10, x.high), ridge = peak / bandwidth;
  // The slope starts at the bottom or left edge of the picture.
  const double start = std::max(first, std::pow(10, y.low) / bandwidth);
  return fmt::format(
      "<polyline fill=\"none\" stroke=\"currentColor\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n"
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">issue {:.0f} G/s, DRAM {:.0f} GB/s</text>\n",
      x.at(start), y.at(start * bandwidth), x.at(ridge), y.at(peak), x.at(last), y.at(peak), left + width,
      y.at(peak) - 6, peak / 1e9, bandwidth / 1e9);
}

std::string version_legend(std::span<const ScoredVersion> versions, bool without_traffic) {
  std::string out = "<p class=\"legend\">";
  for (size_t version = 0; version < versions.size(); ++version)
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", version_colour(version),
                       escaped(versions[version].name));
  if (without_traffic) out += "hollow: no byte of DRAM";
  return out + "</p>\n";
}

// Places labels next to points, below those that they would overlap.
class PointNames {
public:
  std::string place(double x, double y, std::string_view name) {
    const double length = 7.0 * double(name.size());
    const bool to_the_left = x + 10 + length > left + width;
    const double begin = to_the_left ? x - 10 - length : x + 10;
    double line = y + 4;
    const auto covers = [&](const Box& box) {
      return begin < box.end && box.begin < begin + length && std::abs(line - box.line) < line_height;
    };
    while (std::ranges::any_of(boxes_, covers))
      line += line_height;
    boxes_.push_back({begin, begin + length, line});
    std::string out;
    if (line > y + 5)
      out += fmt::format("<path stroke=\"currentColor\" stroke-opacity=\".4\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", x,
                         y, to_the_left ? begin + length + 2 : begin - 2, line - 4);
    return out + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", begin, line, escaped(name));
  }

private:
  static constexpr double line_height = 14;
  struct Box {
    double begin, end, line;
  };
  std::vector<Box> boxes_;
};

} // namespace

std::string version_colour(size_t version) {
  static constexpr std::array hues = {210, 15, 130, 285, 45, 175, 330, 85};
  return fmt::format("hsl({},60%,{}%)", hues[version % hues.size()], version < hues.size() ? 45 : 65);
}

std::string roofline_chart(const ir::Machine& machine, std::span<const ScoredFile> files, RooflineNames names) {
  const double peak = machine.issue_rate.value * machine.schedulers * machine.sms * machine.clock_mhz * 1e6;
  const double bandwidth = machine.memory.achieved_dram_gb_per_second.value * 1e9;
  const double ridge = peak / bandwidth;
  const std::vector<Point> points = points_of(machine, files);
  double low_x = ridge / 10, high_x = ridge * 10, low_y = peak / 100;
  bool without_traffic = false;
  for (const Point& point : points) {
    low_y = std::min(low_y, point.rate);
    without_traffic |= point.intensity == 0;
    if (point.intensity == 0) continue;
    low_x = std::min(low_x, point.intensity);
    high_x = std::max(high_x, point.intensity);
  }
  const Axis x = axis_around(low_x, high_x, left, width), y = axis_around(low_y, peak, top + height, -height);
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" font-size=\"12\" fill=\"currentColor\" role=\"img\">\n",
                  left + width + 20, top + height + 44) +
      grid(x, y) + roof(peak, bandwidth, x, y);
  const auto first = std::ranges::find(files, &machine, &ScoredFile::machine);
  PointNames placed;
  for (const Point& point : points) {
    const std::string colour = version_colour(point.version);
    const bool hollow = point.intensity == 0;
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"><title>{}</title>"
                       "</circle>\n",
                       hollow ? left + width : x.at(point.intensity), y.at(point.rate), hollow ? "none" : colour,
                       colour, escaped(point.title));
    if (names == RooflineNames::versions)
      out += placed.place(hollow ? left + width : x.at(point.intensity), y.at(point.rate),
                          first->versions[point.version].name);
  }
  return out + "</svg>\n" + version_legend(first->versions, without_traffic);
}

} // namespace ptxrewrite::evaluate
