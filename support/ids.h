// Typed 32-bit handles and the dense tables they index.
//
// A handle is an index with a type: a BlockId cannot be passed for a ValueId. Tables assign handles in order of
// insertion and never reassign them, so handles stay valid while the table lives.
#pragma once

#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ptxrewrite {

template <class Tag> class Id {
public:
  static constexpr uint32_t invalid_index = UINT32_MAX;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t index) : index_(index) {}

  constexpr uint32_t index() const { return index_; }
  constexpr bool valid() const { return index_ != invalid_index; }
  constexpr explicit operator bool() const { return valid(); }
  constexpr auto operator<=>(const Id&) const = default;

private:
  uint32_t index_ = invalid_index;
};

// Dense table of T, indexed by IdType.
template <class IdType, class T> class Table {
public:
  Table() = default;
  explicit Table(size_t size, const T& fill = T()) : rows_(size, fill) {}

  IdType add(T row) {
    rows_.push_back(std::move(row));
    return IdType(static_cast<uint32_t>(rows_.size() - 1));
  }
  T& operator[](IdType id) {
    assert(id.index() < rows_.size());
    return rows_[id.index()];
  }
  const T& operator[](IdType id) const {
    assert(id.index() < rows_.size());
    return rows_[id.index()];
  }
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  bool contains(IdType id) const { return id.index() < rows_.size(); }
  void reserve(size_t count) { rows_.reserve(count); }
  void resize(size_t count, const T& fill = T()) { rows_.resize(count, fill); }
  void clear() { rows_.clear(); }
  auto begin() { return rows_.begin(); }
  auto end() { return rows_.end(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

  // Iteration over handles: `for (BlockId block : table.ids())`.
  class IdRange {
  public:
    class Iterator {
    public:
      explicit Iterator(uint32_t index) : index_(index) {}
      IdType operator*() const { return IdType(index_); }
      Iterator& operator++() {
        ++index_;
        return *this;
      }
      bool operator==(const Iterator&) const = default;

    private:
      uint32_t index_;
    };
    explicit IdRange(uint32_t count) : count_(count) {}
    Iterator begin() const { return Iterator(0); }
    Iterator end() const { return Iterator(count_); }

  private:
    uint32_t count_;
  };
  IdRange ids() const { return IdRange(static_cast<uint32_t>(rows_.size())); }

private:
  std::vector<T> rows_;
};

} // namespace ptxrewrite

template <class Tag> struct std::hash<ptxrewrite::Id<Tag>> {
  size_t operator()(ptxrewrite::Id<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.index()); }
};
