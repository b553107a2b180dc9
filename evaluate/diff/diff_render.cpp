#include "evaluate/diff/diff_render.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace ptxrewrite::evaluate {

namespace {

std::string_view text_of(const std::vector<ListingLine>& lines, uint32_t index) {
  return index == AlignedLine::none ? std::string_view() : std::string_view(lines[index].text);
}

std::string_view indentation(const ListingLine& line) {
  return line.indented ? "    " : "";
}

std::string padded(std::string text, size_t width) {
  if (text.size() > width) {
    text.resize(width > 0 ? width - 1 : 0);
    if (width > 0) text += '~';
  }
  text.resize(width, ' ');
  return text;
}

std::string shown(const std::vector<ListingLine>& lines, uint32_t index) {
  if (index == AlignedLine::none) return "";
  return std::string(indentation(lines[index])) + lines[index].text;
}

// "backprop.ptx:63", or only the function: the start of the hunk in the left file.
std::string hunk_title(const Difference& part, size_t first) {
  std::string title = part.name.empty() ? "outside functions" : part.name;
  for (size_t row = first; row < part.rows.size(); ++row) {
    uint32_t left = part.rows[row].left;
    if (left == AlignedLine::none || part.left[left].source_line == 0) continue;
    return title + ", line " + std::to_string(part.left[left].source_line);
  }
  return title;
}

std::string_view colour_of(const AlignedLine& row, bool left, const Palette& palette) {
  if (row.moved) return palette.cyan();
  switch (row.status) {
  case LineStatus::kept:
    return "";
  case LineStatus::changed:
    return left ? palette.red() : palette.green();
  case LineStatus::removed:
    return palette.red();
  case LineStatus::inserted:
    return palette.green();
  }
  return "";
}

void append_unified_line(std::string& out, char mark, std::string_view colour, const ListingLine& line, bool moved,
                         const Palette& palette) {
  out += colour;
  out += mark;
  out.append(indentation(line)).append(line.text);
  if (moved) out += "  // moved";
  if (!colour.empty()) out += palette.reset();
  out += '\n';
}

// The changed rows of a run are shown as all old lines, then all new lines, as diff tools do.
void append_unified_hunk(std::string& out, const Difference& part, size_t begin, size_t end, const Palette& palette) {
  out.append(palette.bold()).append("@@ ").append(hunk_title(part, begin)).append(" @@").append(palette.reset());
  out += '\n';
  for (size_t row = begin; row < end;) {
    if (part.rows[row].status == LineStatus::kept) {
      append_unified_line(out, ' ', "", part.left[part.rows[row].left], false, palette);
      ++row;
      continue;
    }
    size_t run_end = row;
    while (run_end < end && part.rows[run_end].status != LineStatus::kept)
      ++run_end;
    for (size_t i = row; i < run_end; ++i)
      if (const AlignedLine& line = part.rows[i]; line.left != AlignedLine::none)
        append_unified_line(out, '-', colour_of(line, true, palette), part.left[line.left], line.moved, palette);
    for (size_t i = row; i < run_end; ++i)
      if (const AlignedLine& line = part.rows[i]; line.right != AlignedLine::none)
        append_unified_line(out, '+', colour_of(line, false, palette), part.right[line.right], line.moved, palette);
    row = run_end;
  }
}

char gutter(const AlignedLine& row) {
  switch (row.status) {
  case LineStatus::kept:
    return ' ';
  case LineStatus::changed:
    return '|';
  case LineStatus::removed:
    return row.moved ? '{' : '<';
  case LineStatus::inserted:
    return row.moved ? '}' : '>';
  }
  return ' ';
}

const char* status_word(LineStatus status) {
  switch (status) {
  case LineStatus::kept:
    return "kept";
  case LineStatus::changed:
    return "changed";
  case LineStatus::removed:
    return "removed";
  case LineStatus::inserted:
    return "inserted";
  }
  return "kept";
}

} // namespace

bool Difference::identical() const {
  return std::all_of(rows.begin(), rows.end(), [](const AlignedLine& row) { return row.status == LineStatus::kept; });
}

std::vector<std::pair<size_t, size_t>> hunks(std::span<const AlignedLine> rows, unsigned context) {
  std::vector<std::pair<size_t, size_t>> result;
  if (context == whole_context) {
    if (!rows.empty()) result.emplace_back(0, rows.size());
    return result;
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].status == LineStatus::kept) continue;
    size_t begin = row > context ? row - context : 0;
    size_t end = std::min(rows.size(), row + 1 + context);
    if (!result.empty() && begin <= result.back().second)
      result.back().second = end;
    else
      result.emplace_back(begin, end);
  }
  return result;
}

std::string unified_text(const DifferenceReport& report, unsigned context, const Palette& palette) {
  std::string out;
  for (const Difference& part : report.parts) {
    if (part.identical() && context != whole_context) continue;
    if (out.empty()) {
      out.append(palette.bold()).append("--- ").append(report.left_name).append("\n+++ ").append(report.right_name);
      out.append(palette.reset()).append("\n");
    }
    for (auto [begin, end] : hunks(part.rows, context))
      append_unified_hunk(out, part, begin, end, palette);
  }
  return out;
}

std::string side_by_side_text(const DifferenceReport& report, unsigned context, unsigned width,
                              const Palette& palette) {
  std::string out;
  size_t column = std::max(width, 40u) / 2 - 2;
  for (const Difference& part : report.parts) {
    if (part.identical() && context != whole_context) continue;
    if (out.empty()) {
      out.append(palette.bold()).append(padded(report.left_name, column)).append("   ").append(report.right_name);
      out.append(palette.reset()).append("\n");
    }
    for (auto [begin, end] : hunks(part.rows, context)) {
      out.append(palette.bold()).append("@@ ").append(hunk_title(part, begin)).append(" @@");
      out.append(palette.reset()).append("\n");
      for (size_t row = begin; row < end; ++row) {
        const AlignedLine& line = part.rows[row];
        std::string right = shown(part.right, line.right);
        std::string_view left_colour = colour_of(line, true, palette), right_colour = colour_of(line, false, palette);
        out.append(left_colour).append(padded(shown(part.left, line.left), column));
        if (!left_colour.empty()) out += palette.reset();
        out.append(" ").append(1, gutter(line));
        if (!right.empty()) {
          out.append(" ").append(right_colour).append(right.size() > column ? padded(right, column) : right);
          if (!right_colour.empty()) out += palette.reset();
        }
        while (out.back() == ' ')
          out.pop_back();
        out += '\n';
      }
    }
  }
  return out;
}

std::string summary_text(const DifferenceReport& report, const Palette& palette) {
  size_t width = 8;
  bool any = false, sections = false;
  for (const Difference& part : report.parts) {
    if (part.name.empty()) continue;
    width = std::max(width, part.name.size());
    any = true;
    sections |= part.counts.sections != 0;
  }
  if (!any) return "";
  std::string out;
  out.append(palette.bold()).append(padded("function", width));
  out.append("  before   after    kept changed removed inserted   moved");
  out.append(sections ? "  sections" : "").append(palette.reset()).append("\n");
  for (const Difference& part : report.parts) {
    if (part.name.empty()) continue;
    const DifferenceCounts& c = part.counts;
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, "%8zu%8zu%8zu%8zu%8zu%9zu%8zu", c.left, c.right, c.kept, c.changed,
                  c.removed, c.inserted, c.moved);
    out += padded(part.name, width) + numbers;
    if (sections) {
      std::snprintf(numbers, sizeof numbers, "%10zu", c.sections);
      out += numbers;
    }
    out += '\n';
  }
  if (sections) out += "sections: of the instructions after, those that not every thread executes\n";
  return out;
}

nlohmann::ordered_json difference_json(const DifferenceReport& report) {
  using Json = nlohmann::ordered_json;
  Json functions = Json::array();
  for (const Difference& part : report.parts) {
    const DifferenceCounts& c = part.counts;
    Json lines = Json::array();
    for (const AlignedLine& row : part.rows) {
      Json line = {{"status", status_word(row.status)}};
      if (row.left != AlignedLine::none) {
        line["left"] = text_of(part.left, row.left);
        if (part.left[row.left].source_line) line["line"] = part.left[row.left].source_line;
      }
      if (row.right != AlignedLine::none) line["right"] = text_of(part.right, row.right);
      if (row.moved) line["moved"] = true;
      lines.push_back(std::move(line));
    }
    functions.push_back({{"name", part.name},
                         {"before", c.left},
                         {"after", c.right},
                         {"kept", c.kept},
                         {"changed", c.changed},
                         {"removed", c.removed},
                         {"inserted", c.inserted},
                         {"moved", c.moved},
                         {"sections", c.sections},
                         {"lines", std::move(lines)}});
  }
  return {{"left", report.left_name}, {"right", report.right_name}, {"functions", std::move(functions)}};
}

} // namespace ptxrewrite::evaluate
