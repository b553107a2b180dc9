// One limit for all that a launch takes of the host's memory: buffers, local and shared memory, frames of calls, the
// kernel's heap, what check mode and observers remember.
#pragma once

#include "support/result.h"

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ptxrewrite::emulator {

// Three quarters of what this process may have: the machine's memory, what its control group allows, and what is left
// of its address space (ulimit -v).
uint64_t default_memory_limit();
// What is left of the address space; UINT64_MAX: it is not limited.
uint64_t free_address_space();

class MemoryBudget {
public:
  explicit MemoryBudget(uint64_t limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Any thread. False: it would be more than the limit, and nothing is taken.
  bool try_take(uint64_t bytes);
  // The same; the error says what asks for how much.
  Status take(uint64_t bytes, std::string_view what);
  void give_back(uint64_t bytes) { used_ -= bytes; }
  // "'tile' asks for 100 bytes; 40 of the 1000 bytes that a launch may take (--memory) are left"
  Error refusal(uint64_t bytes, std::string_view what) const;
  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_; }

private:
  uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// What one owner has taken; given back with it.
class MemoryShare {
public:
  explicit MemoryShare(MemoryBudget& budget) : budget_(&budget) {}
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;
  ~MemoryShare() { budget_->give_back(bytes_); }

  bool try_grow(uint64_t bytes) {
    if (!budget_->try_take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  MemoryBudget& budget() const { return *budget_; }

private:
  MemoryBudget* budget_;
  uint64_t bytes_ = 0;
};

} // namespace ptxrewrite::emulator
