// One growing array per owner that holds many variable-length lists, so that a list needs no allocation of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptxrewrite {

// Refers to `count` consecutive elements of a SpanPool. A default PoolSpan is the empty list.
struct PoolSpan {
  uint32_t offset = 0;
  uint32_t count = 0;
  bool empty() const { return count == 0; }
};

template <class T> class SpanPool {
public:
  // Copies `items` to the end of the pool. `items` may point into the pool itself.
  PoolSpan add(std::span<const T> items) {
    PoolSpan span{static_cast<uint32_t>(items_.size()), static_cast<uint32_t>(items.size())};
    if (!items.empty() && items.data() >= items_.data() && items.data() < items_.data() + items_.size()) {
      size_t start = static_cast<size_t>(items.data() - items_.data());
      items_.resize(items_.size() + items.size());
      for (size_t i = 0; i < span.count; ++i)
        items_[span.offset + i] = items_[start + i];
    } else {
      items_.insert(items_.end(), items.begin(), items.end());
    }
    return span;
  }
  std::span<T> view(PoolSpan span) { return {items_.data() + span.offset, span.count}; }
  std::span<const T> view(PoolSpan span) const { return {items_.data() + span.offset, span.count}; }
  size_t size() const { return items_.size(); }
  void reserve(size_t count) { items_.reserve(count); }

private:
  std::vector<T> items_;
};

} // namespace ptxrewrite
