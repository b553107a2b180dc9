// Parts of a report's page: inline SVG charts and tables, in the colours of the page's style (page_style.cpp). Texts
// from the user are escaped here.
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

// A table whose columns can be sorted by clicking on their headings. Cells are HTML.
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
// A cell with a bar as background: `share` of the cell's width. `key`: the sort key.
std::string bar_cell(double share, std::string_view text, double key);
// The same in the colour of heat.
std::string heat_cell(uint64_t key, double share, std::string_view text);

// y over x, as steps or straight lines, with one point marked and labelled.
struct Curve {
  std::string title, x_name, y_name;
  std::vector<std::pair<double, double>> points; // by x
  bool steps = false;
  double y_top = 0; // top of the axis; 0: the highest point
  double marked_x = 0, marked_y = 0;
  std::string mark; // label of the marked point; empty: none is marked
};
std::string curve_chart(const Curve& curve);

// Without white space at both ends.
std::string_view trimmed(std::string_view text);

// Parts of a whole as a bar, each with a letter that is explained in a legend.
struct StackPart {
  std::string name;
  unsigned colour = 0; // index into the style's colours
  double value = 0;
};
inline constexpr unsigned stack_colours = 12;
std::string stack_bar(std::span<const StackPart> parts, double whole, std::span<const std::string> letters);

// The lines of CUDA that issue most; empty if no file of them is at hand.
std::string hot_cuda_lines(const KernelFacts& facts);
// The CUDA source by file, with the counts of each line and links to its PTX; without line information a sentence on
// how to get it.
std::string cuda_view(const KernelFacts& facts);
// A kernel's text, line by line, with the counts of each line.
std::string source_view(const KernelFacts& facts);
// Blocks from top to bottom with their warps, and edges with their threads.
std::string flow_chart(const KernelFacts& facts);
// The lines before and after the passes, marked + and -, with changed words highlighted in both.
std::string difference_view(const Difference& difference);

} // namespace ptxrewrite::evaluate
