// Parts of a report's page: pictures as inline SVG and tables, in colours that the page's style names (page_style.cpp).
// Everything that comes from texts of users is escaped here.
#pragma once

#include "evaluate/report/kernel_facts.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

// The page up to its body, and its end.
std::string page_begin(std::string_view title);
std::string page_end();

// A table whose columns can be sorted by a click on their heads. Cells are HTML.
struct PageTable {
  struct Column {
    std::string head;
    bool is_number = true;
    std::string_view css = {}; // class of the column's cells
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::string html(std::string_view css = {}) const;
};
// A cell with a bar behind its text: `share` of the cell's width. `key`: what the column is sorted by.
std::string bar_cell(double share, std::string_view text, double key);

// y over x, as steps or straight lines, with one point marked and named.
struct Curve {
  std::string title, x_name, y_name;
  std::vector<std::pair<double, double>> points; // by x
  bool steps = false;
  double y_top = 0; // of the axis; 0: the highest point
  double marked_x = 0, marked_y = 0;
  std::string mark; // its name; empty: no point is marked
};
std::string curve_chart(const Curve& curve);

// Parts of one whole as a bar, each with a letter that a legend tells.
struct StackPart {
  std::string name;
  unsigned colour = 0; // of the style's
  double value = 0;
};
inline constexpr unsigned stack_colours = 12;
std::string stack_bar(std::span<const StackPart> parts, double whole, std::span<const std::string> letters);

// A kernel's text, line by line, with what each did in the run.
std::string source_view(const KernelFacts& facts);
// Blocks from top to bottom, with warps, and edges with threads.
std::string flow_chart(const KernelFacts& facts);
// Before and after the passes: lines with + and -, changed words marked in both.
std::string difference_view(const Difference& difference);

} // namespace ptxrewrite::evaluate
