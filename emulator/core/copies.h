// Asynchronous copies of a block that have been issued and not been carried out (PTX ISA 9.7.9.25).
//
// A copy may take place at any time from its issue until somebody has waited for it. The emulator has two times: at
// once, or with LaunchRequest::late_copies as late as it may. A kernel that waits as it must gives the same either way;
// one that reads too early, or lets memory change under a copy, differs between the two.
#pragma once

#include "emulator/memory/data_report.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::emulator {

struct Warp;

// Groups of cp.async and of cp.async.bulk are counted separately.
enum class CopyKind : uint8_t { plain, bulk };

struct PendingCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint32_t bytes = 0;                          // to be written
  uint32_t wanted = 0;                         // of them read; the rest are zeros
  uint16_t byte_mask = 0xffff;                 // of each 16 bytes: those that are copied
  uint8_t skipped_front = 0, skipped_back = 0; // bytes at the ends that are not copied
  DataReport report = DataReport::none;        // to the mbarrier where the bytes are counted
};
void carry_out(const PendingCopy& copy);
// Of a copy that has been carried out: does it report to its mbarrier?
bool reports(const PendingCopy& copy);
// Counts a copy's bytes at its mbarrier, after its report if it makes one. Returns the fault's message, or an empty
// string.
std::string complete_copy(std::byte* barrier, uint32_t bytes, bool reports);

// A copy that is more than a run of bytes (emulator/tensor_copies).
class LateWork {
public:
  virtual ~LateWork() = default;
  virtual void carry_out() = 0;
  // Of work that has been carried out: does it report to its mbarrier?
  virtual bool reports() const { return false; }
};

class LateCopies {
public:
  static constexpr size_t most_pending = 1 << 20;

  explicit LateCopies(uint32_t threads) : groups_{std::vector<uint32_t>(threads), std::vector<uint32_t>(threads)} {}
  void start_block();
  // The limit is larger than the number of pending copies of any kernel that waits for its copies.
  bool full() const { return pieces_ >= most_pending; }

  // Adds the copy to the thread's open group.
  void add(CopyKind kind, uint32_t thread, const PendingCopy& copy) { push(kind, thread, copy, nullptr, nullptr, 1); }
  // The same for a copy that completes at `barrier`, its host address; nullptr: in the group. Returns the fault's
  // message, or an empty string: a copy performed at once finds the same fault.
  [[nodiscard]] std::string add(CopyKind kind, uint32_t thread, const PendingCopy& copy, std::byte* barrier);
  // The same for other work, of `bytes` bytes in `pieces` pieces.
  [[nodiscard]] std::string add(CopyKind kind, uint32_t thread, std::unique_ptr<LateWork> work, uint32_t bytes,
                                size_t pieces, std::byte* barrier);
  void close_group(CopyKind kind, uint32_t thread) { ++groups_[static_cast<unsigned>(kind)][thread]; }
  // Performs all closed groups of the thread except the newest `but`.
  void wait(CopyKind kind, uint32_t thread, uint32_t but);
  // The same for all groups, including the open one.
  void wait_for_all(CopyKind kind, uint32_t thread);
  // The thread arrives at the barrier when the plain copies that it has issued are performed.
  void arrive_when_done(uint32_t thread, std::byte* barrier);
  // A thread tests the mbarrier's phase: performs the pending copies that complete there. Returns the fault's message,
  // or an empty string.
  std::string complete(std::byte* barrier);
  // The block has ended: performs all pending copies.
  void finish();

private:
  struct Entry {
    CopyKind kind = CopyKind::plain;
    bool arrival = false; // an arrival at the barrier, instead of a copy
    uint32_t thread = 0;
    uint32_t group = 0;
    std::byte* barrier = nullptr;
    PendingCopy copy;
    std::unique_ptr<LateWork> work; // instead of the copy; nullptr: none
    size_t pieces = 1;
  };
  void push(CopyKind kind, uint32_t thread, const PendingCopy& copy, std::byte* barrier, std::unique_ptr<LateWork> work,
            size_t pieces);
  template <class Chosen> void carry_out_if(Chosen&& chosen);
  template <class Chosen, class After> void carry_out_if(Chosen&& chosen, After&& after);

  std::vector<Entry> entries_;      // in the order of their issue
  size_t pieces_ = 0;               // of them
  std::vector<uint32_t> groups_[2]; // closed ones, by kind and thread
};

// Matrix products of the block's warp groups that have been issued and not waited for (special/warp_group.h).
class WarpGroups {
public:
  virtual ~WarpGroups() = default;
  virtual void start_block() = 0;
  // Called when a warp ends. Drops the products that it has issued and other warps of its group have not: they can no
  // longer complete.
  virtual void forget(const Warp& warp) = 0;
};

// Tensor memory of the block, and asynchronous operations on it that have been issued and not waited for
// (emulator/tensor_memory).
class TensorUnit {
public:
  virtual ~TensorUnit() = default;
  virtual void start_block() = 0;
  // Performs the warp's pending stores.
  virtual void warp_ended(const Warp& warp) = 0;
  // A thread tests the phase of the mbarrier at `barrier`: performs all operations that a commit to it covers. Returns
  // the fault's message, or an empty string.
  virtual std::string complete(std::byte* barrier) = 0;
  // All warps have ended; `last` is the one that ended last.
  virtual void block_ended(Warp& last) = 0;
};

} // namespace ptxrewrite::emulator
