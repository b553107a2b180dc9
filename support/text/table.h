// Text in columns.
#pragma once

#include <string>
#include <string_view>
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

// The beginning and the end of a longer text, "..." between them: at most `most` characters, of which there are eight
// or more. Names of kernels that are instances of templates have thousands.
std::string shortened(std::string_view text, size_t most);
inline constexpr size_t longest_name = 80; // of a kernel in a table; documents have whole names

} // namespace ptxrewrite
