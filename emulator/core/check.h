// Check mode: what a kernel does wrong without crashing.
//
// Found are reads of shared and local memory that nothing has written, races between warps of a block on shared memory
// and between warps of all blocks on global memory, lanes of one store instruction that write different values to one
// place, `.aligned` barriers that not all lanes of a warp execute, and barriers whose warps disagree on how many they
// are.
//
// Races are found by happens-before, whatever order the warps ran in: each warp has a vector clock. Barriers join the
// clocks of those who wait with those who arrived; so does a strong read (atomic, volatile, relaxed, acquire) that is
// followed by a fence with what its place was given by a strong write behind a fence (PTX ISA 8, causality order,
// simplified: the whole warp takes part in what one of its lanes does, and a place never forgets). Strong accesses do
// not race with one another; nor does a store race with a store of the same bytes. Lanes of one warp are ordered as
// they were executed. On shared memory, barriers and flags that reach a warp of this block by way of another block are
// not followed, unless the two are in one cluster.
//
// Blocks of a cluster race with one another as warps of a block do, and a word of shared memory belongs to its block:
// what other blocks do there has to come after something that the block has done (it has started), and before something
// that it waits for (it has not ended). barrier.cluster is both.
//
// A matrix product of a warp group (wgmma) reads shared memory at some time from its issue to the end of a wait for it:
// race detection treats them as reads by an extra warp, ordered before everything behind that wait. Its operands must
// have been written by bulk copies, or by stores with a fence.proxy.async between the store and the product. Registers
// that it shares with other instructions need a wgmma.fence in between.
//
// Cells of tensor memory are ordered in the same way (emulator/tensor_memory/cell_check.h): a commit behind a product
// arrives at an mbarrier, and the product is ordered before whatever follows a successful test of that phase.
//
// On global memory a race has a plain store in it, that changes the bytes; strong accesses alone make none, nor does a
// read of what was written strongly. Blocks are ordered by strong accesses with a fence in front of the write, all that
// happened before the fence with all that happens after the read (emulator/memory/global_shadow.h), whatever the
// scopes. So that all this is the same each time, blocks run on one host thread.
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

// Findings of all blocks, one for each static instruction and kind. The same whatever host threads found them.
class FindingTable {
public:
  struct Key {
    uint32_t instruction = 0; // image-wide
    FindingKind kind = FindingKind::uninitialised;
    auto operator<=>(const Key&) const = default;
  };
  // `finding` describes the first one in the block; it may be missing when the same checker has added one for the key
  // before, for a lower block.
  void add(const Key& key, uint64_t block, uint64_t times, std::optional<Finding> finding);
  // In the order of the instructions, of blocks up to `last_block` only.
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
  // Lanes of warp.mask are about to access `bytes` bytes each, in or out of bounds. `values`: what a store will write,
  // the lane arrays that lie one behind the other in memory; may be empty.
  virtual void access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                      AccessKind kind, std::span<const LaneRef> values) = 0;
  virtual void fence(Warp& warp) = 0;
  // fence.proxy.async: what the warp knows to have been written can be read by asynchronous operations.
  virtual void proxy_fence(Warp& warp) = 0;
  // Lanes of warp.mask: shared memory that product `number` (from 1 on) of the warp's group is to read.
  virtual void product_reads(Warp& warp, const MicroOp& op, const uint64_t* addresses, uint64_t bytes,
                             uint32_t number) = 0;
  // The warp has waited for the products of its group up to `number`.
  virtual void products_done(Warp& warp, uint32_t number) = 0;
  // A commit to the mbarrier at `address`: the products of the warp's group up to `number` are ordered before whatever
  // acquires there.
  virtual void release_products(Warp& warp, Space space, uint64_t address, uint32_t number) = 0;
  // The warp's own component of its vector clock.
  virtual uint32_t moment(const Warp& warp) const = 0;
  // Does the warp's vector clock order it behind time `clock` of warp `of` in block `rank` of the cluster? With
  // `by_products`, `clock` is a matrix product's number in that warp's group.
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
  // Reports that no fence orders the instruction behind an earlier access. `what`: the message.
  virtual void missing_fence(Warp& warp, const MicroOp& op, std::string_view what) = 0;
  // Addresses of tensor maps in global memory that the block has changed with no fence.proxy.tensormap behind.
  virtual std::vector<uint64_t>& changed_tensor_maps() = 0;
  // The warp releases at this address: its accesses so far are ordered before whatever acquires there.
  virtual void release(Warp& warp, Space space, uint64_t address) = 0;
  // The kernel's malloc has returned this memory, which others may have had before.
  virtual void allocated(uint64_t address, uint64_t bytes) = 0;
  // The running split executes a barrier instruction.
  virtual void barrier_executed(Warp& warp, const MicroOp& op, unsigned number, uint32_t expected_warps,
                                bool aligned) = 0;
  // All live lanes of the warp stand at barriers of one number.
  virtual void lanes_gathered(Warp& warp) = 0;
  virtual void warp_arrived(Warp& warp, unsigned number) = 0;
  // The warps of the mask `waiting_warps` go on. `of_all`: the barrier was one of all warps that have not ended.
  virtual void barrier_completed(Block& block, unsigned number, uint32_t waiting_warps, bool of_all) = 0;
  // barrier.cluster: the warp's lanes arrive; all have arrived; the warp goes on behind its wait.
  virtual void cluster_arrived(Warp& warp, bool relaxed) = 0;
  virtual void cluster_barrier_completed() = 0;
  virtual void cluster_waited(Warp& warp) = 0;
  // All threads of a block of a cluster have ended.
  virtual void block_ended() = 0;
  virtual void activation_started(Warp& warp, const Activation& activation) = 0;
  // A call has put a parameter or a result of these lanes there.
  virtual void local_written(Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes) = 0;
  // Adds what was found in the block that has ended.
  virtual void take_findings(FindingTable& findings) = 0;
};

// Bytes of host memory that a checker allocates when a block starts. Tables that grow while it runs are not in it, but
// for what is remembered of other blocks of the cluster.
constexpr uint64_t checker_bytes(uint64_t shared_bytes, uint64_t local_bytes, uint64_t cluster_blocks) {
  const uint64_t of_cluster = cluster_blocks > 1 ? 64 * shared_bytes + cluster_blocks * 36'000 : 0;
  return 64 * shared_bytes + local_bytes / 8 + of_cluster;
}

std::unique_ptr<MemoryChecker> make_memory_checker(const LaunchState& launch);

} // namespace ptxrewrite::emulator
