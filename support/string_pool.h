// Interned strings: equal text has equal Symbol, so that names compare and hash as integers.
#pragma once

#include "support/ids.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ptxrewrite {

struct SymbolTag;
using Symbol = Id<SymbolTag>;

class StringPool {
public:
  StringPool() = default;
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;

  Symbol intern(std::string_view text);
  // The handle of `text` if it has been interned, otherwise an invalid one.
  Symbol find(std::string_view text) const;
  // Valid while the pool lives; "" for an invalid handle.
  std::string_view text(Symbol symbol) const { return symbol ? texts_[symbol.index()] : std::string_view(); }
  size_t size() const { return texts_.size(); }

private:
  std::string_view store(std::string_view text);

  std::vector<std::string_view> texts_;
  std::unordered_map<std::string_view, uint32_t> index_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t chunk_used_ = 0;
  size_t chunk_size_ = 0;
};

} // namespace ptxrewrite
