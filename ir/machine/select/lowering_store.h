// Lowerings of versions of one function, found again by content: whoever weighs candidates of a rewrite asks for the
// same version many times, as the original of one candidate and as the outcome of another.
//
//   LoweringStore store;
//   const Lowering& lowering = *store.of(function, 80);
//
// Contents are the same when ids, operands and types are the same; copies of a function keep its ids. Within one
// module, whose variables stay as they are: not for keeping from module to module.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/select/lowering.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace ptxrewrite::ir {

// Of everything in a function that its lowering depends on, but for the bodies of functions that it calls.
using ContentHash = std::array<uint64_t, 2>;
ContentHash content_hash(const Function& function);

class LoweringStore {
public:
  // Functions that call others or have an affine stream are lowered each time: what is theirs lies elsewhere.
  std::shared_ptr<const Lowering> of(const Function& function, uint32_t compute_capability);
  void clear();

  // How often a lowering was asked for, and how often it was computed.
  uint64_t asked() const { return asked_; }
  uint64_t computed() const { return computed_; }

private:
  struct Entry {
    ContentHash hash{};
    uint32_t compute_capability = 0;
    size_t instructions = 0; // room that it takes
    std::shared_ptr<const Lowering> lowering;
  };

  std::vector<Entry> entries_; // oldest first
  size_t instructions_ = 0;    // of all entries
  uint64_t asked_ = 0, computed_ = 0;
};

} // namespace ptxrewrite::ir
