#include "support/string_pool.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite {

namespace {
constexpr size_t default_chunk_bytes = 64 * 1024;
}

Symbol StringPool::intern(std::string_view text) {
  auto found = index_.find(text);
  if (found != index_.end()) return Symbol(found->second);
  std::string_view stored = store(text);
  auto index = static_cast<uint32_t>(texts_.size());
  texts_.push_back(stored);
  index_.emplace(stored, index);
  return Symbol(index);
}

Symbol StringPool::find(std::string_view text) const {
  auto found = index_.find(text);
  return found == index_.end() ? Symbol() : Symbol(found->second);
}

std::string_view StringPool::store(std::string_view text) {
  if (chunk_used_ + text.size() > chunk_size_) {
    chunk_size_ = std::max(default_chunk_bytes, text.size());
    chunks_.push_back(std::make_unique<char[]>(chunk_size_));
    chunk_used_ = 0;
  }
  char* place = chunks_.back().get() + chunk_used_;
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  chunk_used_ += text.size();
  return {place, text.size()};
}

} // namespace ptxrewrite
