// The race checker of one running block: a record of its memory accesses and the vector clocks that order them
// (emulator/core/check.h). In a launch in clusters the checkers of a cluster's blocks cooperate: accesses to a block's
// shared memory are recorded by its own checker, and clocks cover the warps of all blocks of the cluster.
#pragma once

#include "emulator/check/clock.h"
#include "emulator/core/address.h"
#include "emulator/core/check.h"
#include "emulator/core/watch.h"
#include "emulator/memory/global_shadow.h"
#include "emulator/memory/shadow.h"

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

// The memory-model properties of a memory instruction.
struct Strength {
  bool known = false;
  bool strong = false;
  bool acquires = false;
  bool releases = false;
  bool by_async_proxy = false;
};

// The lanes of one instruction that access shared or global memory, with their addresses in that space.
struct LaneAccesses {
  const MicroOp* op = nullptr;
  std::array<uint64_t, warp_size> addresses;
  uint32_t lanes = 0;
  uint64_t bytes = 0;
  Strength strength;
  std::span<const LaneRef> values;
  bool is_atomic = false;
  uint32_t clock = 0; // of the warp, before the instruction
};

// Byte `index` of the value that a store of `bytes` bytes writes in `lane`.
inline std::byte stored_byte(const Warp& warp, std::span<const LaneRef> values, uint64_t bytes, unsigned lane,
                             uint64_t index) {
  const uint64_t width = bytes / values.size();
  return warp.lanes<std::byte>(values[index / width])[lane * width + index % width];
}

constexpr size_t places_at_a_time = 4096; // addresses of strong accesses per reservation of memory

class BlockChecker final : public MemoryChecker {
public:
  explicit BlockChecker(const LaunchState& launch);

  void start_block(Block& block) override;
  void access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes, AccessKind kind,
              std::span<const LaneRef> values) override;
  void fence(Warp& warp) override;
  void proxy_fence(Warp& warp) override;
  void tensor_fence(Warp& warp, bool before) override;
  void product_reads(Warp& warp, const MicroOp& op, const uint64_t* addresses, uint64_t bytes,
                     uint32_t number) override;
  void products_done(Warp& warp, uint32_t number) override;
  void release_products(Warp& warp, Space space, uint64_t address, uint32_t number) override;
  uint32_t moment(const Warp& warp) const override { return known(clocks_[warp.index], warp.index); }
  bool knows(const Warp& warp, uint32_t rank, uint32_t of, uint32_t clock, bool by_products) const override;
  void tensor_memory_misuse(Warp& warp, const MicroOp& op, std::string_view what,
                            std::optional<OtherPlace> other) override;
  void missing_fence(Warp& warp, const MicroOp& op, std::string_view what) override;
  std::vector<uint64_t>& changed_tensor_maps() override { return changed_tensor_maps_; }
  void release(Warp& warp, Space space, uint64_t address) override;
  void allocated(uint64_t address, uint64_t bytes) override;
  void barrier_executed(Warp& warp, const MicroOp& op, unsigned number, uint32_t expected_warps, bool aligned) override;
  void lanes_gathered(Warp& warp) override;
  void warp_arrived(Warp& warp, unsigned number) override;
  void barrier_completed(Block& block, unsigned number, uint32_t waiting_warps, bool of_all) override;
  void cluster_arrived(Warp& warp, bool relaxed) override;
  void cluster_barrier_completed() override;
  void cluster_waited(Warp& warp) override;
  void block_ended() override;
  void activation_started(Warp& warp, const Activation& activation) override;
  void local_written(Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes) override;
  void take_findings(FindingTable& findings) override;

private:
  struct Place { // of an access, for a message
    uint32_t instruction = 0;
    uint32_t warp = 0;
    unsigned lane = 0;
    std::optional<uint64_t> block = std::nullopt; // if it is in another block
    std::optional<uint32_t> rank = std::nullopt;  // if it is in another block of the cluster
  };
  struct Found {
    uint64_t times = 0;
    std::optional<Finding> finding;
    bool described = false; // in this block or an earlier one
    uint32_t last_serial = 0;
  };
  struct BarrierUse {
    bool in_phase = false;
    uint32_t needed = 0;
    Place first;
  };

  // The location of an address in the shared memory of this block or another of the cluster. No owner: invalid.
  struct SharedPlace {
    BlockChecker* owner = nullptr;
    uint64_t offset = 0;
  };
  // Reads by other blocks of the cluster since the last write: the last one, and one that is unordered with it.
  struct RemoteReads {
    ShadowAccess last, other;
  };
  using GivenClocks = std::unordered_map<uint64_t, Clock>;

  uint32_t ranks() const { return block_->cluster ? static_cast<uint32_t>(block_->cluster->blocks.size()) : 1; }
  BlockChecker& of_rank(uint32_t rank) const {
    return static_cast<BlockChecker&>(*block_->cluster->blocks[rank]->checker);
  }
  BlockChecker& home() {
    return block_->cluster ? of_rank(0) : *this;
  } // holds the state shared by the cluster's blocks
  SharedPlace shared_place(Space space, uint64_t address);
  // The latest clock of an agent of this block that `clock` includes; and that of its writes which asynchronous
  // operations may read.
  uint32_t& known(Clock& clock, unsigned agent) const { return clock.known[rank_ * maximum_agents + agent]; }
  uint32_t known(const Clock& clock, unsigned agent) const { return clock.known[rank_ * maximum_agents + agent]; }
  size_t proxied_place(uint32_t rank, unsigned warp) const {
    return ranks() * maximum_agents + rank * maximum_warps + warp;
  }
  size_t tensor_place(uint32_t rank, unsigned agent) const {
    return ranks() * (maximum_agents + maximum_warps) + rank * maximum_agents + agent;
  }
  uint64_t place_bytes() const { return 2 * (sizeof(Clock) + numbers_of_clock(ranks()) * sizeof(uint32_t)); }
  bool has_room_for_places();
  Strength strength(const MicroOp& op);
  bool ordered(const ShadowAccess& before, unsigned warp) const {
    return before.clock <= clocks_[warp].known[before.rank * maximum_agents + before.warp];
  }
  // `read`: the access to record for each lane. `owner`: of the shared memory.
  void load_shared(Warp& warp, const LaneAccesses& access, ShadowAccess read, BlockChecker& owner);
  void check_proxy(Warp& warp, const LaneAccesses& access, unsigned lane, uint64_t address, const ShadowAccess& write);
  void store_shared(Warp& warp, const LaneAccesses& access, BlockChecker& owner);
  void record_read(ShadowCell& cell, const ShadowAccess& read);
  void record_remote_read(BlockChecker& owner, const ShadowAccess& read, unsigned warp, uint64_t address);
  // Checks that the block whose shared memory is accessed is known to the warp to have started.
  void check_started(Warp& warp, const LaneAccesses& access, BlockChecker& owner);
  bool ordered(const GlobalAccess& before, unsigned warp) const;
  GlobalAccess global_access(const LaneAccesses& access, const Warp& warp, unsigned lane) const;
  void load_global(Warp& warp, const LaneAccesses& access);
  void store_global(Warp& warp, const LaneAccesses& access);
  void record_read(GlobalCell& cell, const GlobalAccess& read) const;
  void find_lane_conflict(Warp& warp, const LaneAccesses& access);
  void check_local(Warp& warp, const MicroOp& op, unsigned lane, uint64_t address, uint64_t bytes, AccessKind kind);
  // `place`: the address in `given`, a map of this block or of another one of the cluster. `global`: it is an address
  // in global memory.
  void synchronise(Warp& warp, GivenClocks& given, uint64_t place, bool global, const Strength& strength,
                   AccessKind kind);
  void report_race(Warp& warp, const LaneAccesses& access, unsigned lane, uint64_t address, const ShadowAccess& other,
                   const char* what, const char* other_what, const BlockChecker& owner);
  void report_race(const LaneAccesses& access, const GlobalAccess& here, uint64_t address, const GlobalAccess& other,
                   const char* what, const char* other_what);
  // Counts a finding once per executed instruction; returns true if it has to be described, too.
  bool is_new(const MicroOp& op, FindingKind kind, Found*& found);
  void describe(Found& found, const Place& here, std::string message, const std::optional<Place>& other);
  std::string name_of_shared(uint64_t address) const;

  Block* block_ = nullptr;
  uint32_t rank_ = 0;    // in the cluster
  GlobalShadow& global_; // of the launch; its blocks run on one host thread
  SharedShadow shared_;
  LocalShadow local_;
  std::vector<Strength> strengths_; // by image-wide instruction
  MemoryShare share_;               // of given_
  size_t most_given_ = 0;           // number of addresses with reserved memory
  std::array<Clock, maximum_warps> clocks_{};
  std::array<Clock, maximum_warps> fenced_{};        // released by a strong write
  std::array<Clock, maximum_warps> pending_{};       // found by strong reads, until a fence
  std::array<Clock, maximum_warps> tensor_fenced_{}; // of accesses to tensor memory alone, released by a strong write
  std::array<bool, maximum_warps> has_fenced_{};
  std::vector<uint64_t> changed_tensor_maps_;
  std::array<Clock, 16> barrier_clocks_{};
  std::array<BarrierUse, 17> barrier_uses_{}; // the last one is the cluster's
  GivenClocks given_;                         // by address: released by strong writes
  // For barrier.cluster, of rank 0: the joined clocks of releasing arrivals, and of all arrivals, which suffice to show
  // that a block has not ended; for this phase and for the previous one.
  struct ClusterPhase {
    Clock released, reached;
  };
  ClusterPhase cluster_arriving_, cluster_passed_;
  Clock reached_; // joined clocks of the block's cluster barriers so far
  // For accesses by other blocks of the cluster: reads by address, the last access of each of their warps.
  std::unordered_map<uint64_t, RemoteReads> remote_reads_;
  std::vector<ShadowAccess> last_remote_;
  std::map<FindingTable::Key, Found> found_;
  uint32_t serial_ = 0; // of the instruction being checked
};

} // namespace ptxrewrite::emulator
