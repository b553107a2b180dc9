#include "support/text/table.h"

#include <algorithm>

namespace ptxrewrite {

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (const Column& column : columns)
    widths.push_back(column.title.size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  auto add_line = [&](auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string fill(widths[i] - cell.size(), ' ');
      line += (i ? "  " : "") + (columns[i].right ? fill + cell : cell + fill);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  const std::string empty;
  add_line([&](size_t i) -> const std::string& { return columns[i].title; });
  for (const auto& row : rows)
    add_line([&](size_t i) -> const std::string& { return i < row.size() ? row[i] : empty; });
  return out;
}

std::string shortened(std::string_view text, size_t most) {
  constexpr std::string_view gap = "...";
  if (text.size() <= most) return std::string(text);
  const size_t end = (most - gap.size()) / 2, beginning = most - gap.size() - end;
  return std::string(text.substr(0, beginning)).append(gap).append(text.substr(text.size() - end));
}

} // namespace ptxrewrite
