// A cache of lowerings of versions of one function, by content: when candidates of a rewrite are compared, the same
// version is lowered many times, as the original of one candidate and as the result of another.
//
//   LoweringStore store;
//   const Lowering& lowering = *store.of(function, 80);
//
// Contents are equal if ids, operands and types are equal; copies of a function keep its ids. The cache is valid within
// one module whose variables do not change.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/select/lowering.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace ptxrewrite::ir {

// A hash of everything in a function that its lowering depends on, except the bodies of called functions.
using ContentHash = std::array<uint64_t, 2>;
ContentHash content_hash(const Function& function);

class LoweringStore {
public:
  // Functions with calls or an affine stream are not cached, because the hash does not cover all of their code.
  std::shared_ptr<const Lowering> of(const Function& function, uint32_t compute_capability);
  // content_hash(function). That of the last function is kept while the function stays as it is.
  const ContentHash& content_of(const Function& function);
  void clear();

  // Number of requests, and number of lowerings computed.
  uint64_t asked() const { return asked_; }
  uint64_t computed() const { return computed_; }

private:
  struct Entry {
    ContentHash hash{};
    uint32_t compute_capability = 0;
    size_t instructions = 0; // size for the cache limit
    std::shared_ptr<const Lowering> lowering;
  };

  std::vector<Entry> entries_; // oldest first
  uint64_t last_version_ = 0;  // of the function with this content; 0: none
  ContentHash last_content_{};
  size_t instructions_ = 0; // of all entries
  uint64_t asked_ = 0, computed_ = 0;
};

} // namespace ptxrewrite::ir
