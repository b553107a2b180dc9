// Interned strings: equal text has equal Symbol, so that names compare and hash as integers.
#pragma once

#include "support/hash_index.h"
#include "support/ids.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  uint32_t number_of(std::string_view text, uint64_t hash) const; // HashIndex::none: there is none
  std::string_view store(std::string_view text);

  std::vector<std::string_view> texts_;
  HashIndex index_; // a flat table: most look-ups are of names that are not in a cache of the processor
  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t chunk_used_ = 0;
  size_t chunk_size_ = 0;
};

} // namespace ptxrewrite
