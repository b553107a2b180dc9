// Text in columns.
#pragma once

#include <string>
#include <vector>

namespace ptxrewrite {

struct TextTable {
  struct Column {
    std::string title;
    bool right = false; // numbers
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;

  // Columns as wide as their widest cell, two blanks between them, no blanks at line ends.
  std::string text() const;
};

} // namespace ptxrewrite
