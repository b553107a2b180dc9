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

  // Columns have the width of their widest cell and are separated by two blanks; lines have no trailing blanks.
  std::string text() const;
};

} // namespace ptxrewrite
