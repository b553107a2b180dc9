// A dense table whose rows do not move while it grows: a reference to a row is valid as long as the table.
#pragma once

#include "support/ids.h"

#include <utility>
#include <vector>

namespace ptxrewrite {

// Like Table, but in blocks that never move. For rows that callers hold references to while adding further rows.
template <class IdType, class T> class StableTable {
public:
  IdType add(T row) {
    if (size_ % piece_size == 0) pieces_.emplace_back().reserve(piece_size);
    pieces_.back().push_back(std::move(row));
    return IdType(size_++);
  }
  T& operator[](IdType id) { return pieces_[id.index() / piece_size][id.index() % piece_size]; }
  const T& operator[](IdType id) const { return pieces_[id.index() / piece_size][id.index() % piece_size]; }
  size_t size() const { return size_; }

private:
  static constexpr uint32_t piece_size = 128;
  std::vector<std::vector<T>> pieces_; // with room for all their rows from the start
  uint32_t size_ = 0;
};

} // namespace ptxrewrite
