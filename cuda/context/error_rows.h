// Error codes of an API as a table: number, name and text. Each API has its own rows (errors.def).
#pragma once

#include <span>

namespace ptxrewrite::cuda {

struct ErrorRow {
  int number;
  const char* name;
  const char* text;
};

// Returns nullptr if the API has no such code.
inline const ErrorRow* find_error(std::span<const ErrorRow> rows, int number) {
  for (const ErrorRow& row : rows)
    if (row.number == number) return &row;
  return nullptr;
}

} // namespace ptxrewrite::cuda
