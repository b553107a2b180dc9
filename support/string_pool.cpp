#include "support/string_pool.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace ptxrewrite {

namespace {
constexpr size_t default_chunk_bytes = 64 * 1024;

uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>()(text);
}
} // namespace

uint32_t StringPool::number_of(std::string_view text, uint64_t hash) const {
  return index_.find(hash, [&](uint32_t number) { return texts_[number] == text; });
}

Symbol StringPool::intern(std::string_view text) {
  const uint64_t hash = hash_of(text);
  if (const uint32_t known = number_of(text, hash); known != HashIndex::none) return Symbol(known);
  const auto number = static_cast<uint32_t>(texts_.size());
  texts_.push_back(store(text));
  index_.add(hash, number);
  return Symbol(number);
}

Symbol StringPool::find(std::string_view text) const {
  const uint32_t known = number_of(text, hash_of(text));
  return known == HashIndex::none ? Symbol() : Symbol(known);
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
