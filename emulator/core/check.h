// Check mode: reports errors of a kernel that do not crash it.
//
// Reported are reads of shared and local memory that was never written, races between warps of a block on shared
// memory and between warps of all blocks on global memory, lanes of one store instruction that write different values
// to one address, `.aligned` barriers that not all lanes of a warp execute, and barriers whose warps disagree on their
// number.
//
// Races are found by happens-before, independently of the order in which the warps ran: each warp has a vector clock.
// Barriers join the clocks of arriving warps into those of waiting warps; so does a strong read (atomic, volatile,
// relaxed, acquire) followed by a fence with the clock that a strong write after a fence released at its address (PTX
// ISA 8, causality order, simplified: the whole warp takes part in the actions of each lane, and releases never
// expire). Strong accesses do not race with one another; nor does a store race with a store of the same bytes. Lanes of
// one warp are ordered as they were executed. On shared memory, order that is established by way of another block is
// not followed, unless the two blocks are in one cluster.
//
// Blocks of a cluster race with one another like warps of a block, and a word of shared memory belongs to its block:
// accesses by other blocks have to happen after an action of the block (it has started), and before one that it waits
// for (it has not ended). barrier.cluster is both.
//
// A matrix product of a warp group (wgmma) reads shared memory at any time from its issue to the end of a wait for it:
// race detection treats these reads as those of an extra warp, ordered before everything after the wait. Its operands
// must have been written by bulk copies, or by stores with a fence.proxy.async between the store and the product.
// Registers shared with other instructions need a wgmma.fence in between.
//
// Cells of tensor memory are ordered in the same way (emulator/tensor_memory/cell_check.h): a commit after a product
// arrives at an mbarrier, and the product is ordered before everything after a successful test of that phase. .relaxed
// operations order accesses to tensor memory between a tcgen05.fence::before_thread_sync and an ::after_thread_sync.
//
// On global memory a race includes a plain store that changes the bytes; strong accesses alone are no race, nor is a
// read of strongly written data. Blocks are ordered by strong accesses with a fence before the write: everything before
// the fence with everything after the read (emulator/memory/global_shadow.h), at any scope. Blocks run on one host
// thread, so that findings are the same in every run.
#pragma once

#include "emulator/core/block.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

enum class Space : uint8_t;      // emulator/core/address.h
enum class AccessKind : uint8_t; // emulator/core/watch.h

enum class FindingKind : uint8_t {
  uninitialised,
  race,
  lane_conflict,
  divergent_barrier,
  barrier_count,
  missing_fence,
  tensor_memory,
};

// Findings of all blocks, one per static instruction and kind. Independent of the distribution over host threads.
class FindingTable {
public:
  struct Key {
    uint32_t instruction = 0; // image-wide
    FindingKind kind = FindingKind::uninitialised;
    auto operator<=>(const Key&) const = default;
  };
  // `finding` describes the first one in the block; it may be missing if the same checker has added one for the key
  // before, for a lower block.
  void add(const Key& key, uint64_t block, uint64_t times, std::optional<Finding> finding);
  // The findings of blocks up to `last_block`, in the order of the instructions.
  std::vector<Finding> take(uint64_t last_block);

private:
  struct Entry {
    uint64_t first_block = UINT64_MAX;
    Finding finding;
    std::vector<std::pair<uint64_t, uint64_t>> times; // block, times
  };
  std::map<Key, Entry> entries_;
};

// The checker of one running block.
class MemoryChecker {
public:
  virtual ~MemoryChecker() = default;
  virtual void start_block(Block& block) = 0;
  // Lanes of warp.mask are about to access `bytes` bytes each, in or out of bounds. `values`: the lane arrays that a
  // store writes to consecutive memory; may be empty.
  virtual void access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                      AccessKind kind, std::span<const LaneRef> values) = 0;
  virtual void fence(Warp& warp) = 0;
  // fence.proxy.async: asynchronous operations may read the writes that the warp is ordered after.
  virtual void proxy_fence(Warp& warp) = 0;
  // tcgen05.fence: accesses to tensor memory before it are ordered before later strong writes of the warp (`before`),
  // or those that strong reads have found are ordered before accesses after it.
  virtual void tensor_fence(Warp& warp, bool before) = 0;
  // Lanes of warp.mask: addresses in shared memory read by product `number` (from 1 on) of the warp's group.
  virtual void product_reads(Warp& warp, const MicroOp& op, const uint64_t* addresses, uint64_t bytes,
                             uint32_t number) = 0;
  // The warp has waited for the products of its group up to `number`.
  virtual void products_done(Warp& warp, uint32_t number) = 0;
  // A commit to the mbarrier at `address`: the products of the warp's group up to `number` are ordered before acquires
  // at that address.
  virtual void release_products(Warp& warp, Space space, uint64_t address, uint32_t number) = 0;
  // The warp's own component of its vector clock.
  virtual uint32_t moment(const Warp& warp) const = 0;
  // Whether the warp's accesses to tensor memory are ordered after time `clock` of warp `of` in block `rank` of the
  // cluster. With `by_products`, `clock` is the number of a matrix product in that warp's group.
  virtual bool knows(const Warp& warp, uint32_t rank, uint32_t of, uint32_t clock, bool by_products) const = 0;
  // Reports a race on tensor memory or a misuse of it. `what`: the message. `other`: the second instruction of a race,
  // and its warp.
  struct OtherPlace {
    uint32_t instruction = 0;
    uint32_t warp = 0;
    uint32_t rank = 0;
  };
  virtual void tensor_memory_misuse(Warp& warp, const MicroOp& op, std::string_view what,
                                    std::optional<OtherPlace> other) = 0;
  // Reports that no fence orders the instruction after an earlier access. `what`: the message.
  virtual void missing_fence(Warp& warp, const MicroOp& op, std::string_view what) = 0;
  // Addresses of tensor maps in global memory that the block has changed without a later fence.proxy.tensormap.
  virtual std::vector<uint64_t>& changed_tensor_maps() = 0;
  // The warp releases at this address: its accesses so far are ordered before acquires at that address.
  virtual void release(Warp& warp, Space space, uint64_t address) = 0;
  // The kernel's malloc has returned this memory, which may have had other owners before.
  virtual void allocated(uint64_t address, uint64_t bytes) = 0;
  // The running split executes a barrier instruction.
  virtual void barrier_executed(Warp& warp, const MicroOp& op, unsigned number, uint32_t expected_warps,
                                bool aligned) = 0;
  // All live lanes of the warp are at barriers of one number.
  virtual void lanes_gathered(Warp& warp) = 0;
  virtual void warp_arrived(Warp& warp, unsigned number) = 0;
  // The warps in `waiting_warps` continue. `of_all`: all warps that have not ended take part in the barrier.
  virtual void barrier_completed(Block& block, unsigned number, uint32_t waiting_warps, bool of_all) = 0;
  // barrier.cluster: the warp's lanes arrive; all threads have arrived; the warp continues after its wait.
  virtual void cluster_arrived(Warp& warp, bool relaxed) = 0;
  virtual void cluster_barrier_completed() = 0;
  virtual void cluster_waited(Warp& warp) = 0;
  // All threads of a block of a cluster have ended.
  virtual void block_ended() = 0;
  virtual void activation_started(Warp& warp, const Activation& activation) = 0;
  // A call has stored a parameter or a result of these lanes at the address.
  virtual void local_written(Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes) = 0;
  // Adds the findings of the block, which has ended.
  virtual void take_findings(FindingTable& findings) = 0;
};

// Bytes of host memory that a checker allocates at the start of a block: excludes tables that grow later, except the
// records about other blocks of the cluster.
constexpr uint64_t checker_bytes(uint64_t shared_bytes, uint64_t local_bytes, uint64_t cluster_blocks) {
  const uint64_t of_cluster = cluster_blocks > 1 ? 64 * shared_bytes + cluster_blocks * 36'000 : 0;
  return 64 * shared_bytes + local_bytes / 8 + of_cluster;
}

std::unique_ptr<MemoryChecker> make_memory_checker(const LaunchState& launch);

} // namespace ptxrewrite::emulator
