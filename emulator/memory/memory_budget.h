// A common limit for all host memory that a launch uses: buffers, local and shared memory, frames of calls, the
// kernel's heap, the records of check mode and observers.
#pragma once

#include "support/result.h"

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ptxrewrite::emulator {

// Three quarters of the memory available to this process: the minimum of the machine's memory, the limit of the control
// group, and the rest of the address space (ulimit -v).
uint64_t default_memory_limit();
// The rest of the address space; UINT64_MAX if it is unlimited.
uint64_t free_address_space();

class MemoryBudget {
public:
  explicit MemoryBudget(uint64_t limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Thread-safe. Returns false, without a change, if the limit would be exceeded.
  bool try_take(uint64_t bytes);
  // Like try_take; the error states the request and its size.
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

// The bytes taken by one owner, given back by the destructor.
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
