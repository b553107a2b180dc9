// A running block (CTA), and the memory of a host thread that its blocks use one after the other.
#pragma once

#include "emulator/core/emulator.h"
#include "emulator/core/printed.h"
#include "emulator/core/program.h"
#include "emulator/core/warp.h"
#include "emulator/memory/access_site.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::emulator {

struct RegionCounter {
  uint64_t executions = 0;
  uint64_t lanes = 0;
  uint64_t full_executions = 0; // by generated code with all lanes: in neither of the others
};
struct GuardCounter {
  uint64_t lanes = 0;
  uint64_t off = 0;
};

// The counters of one host thread; added up at the end of the launch.
struct WorkerCounters {
  std::vector<RegionCounter> regions;
  std::vector<GuardCounter> guards;   // by image-wide instruction
  std::vector<uint64_t> transactions; // by image-wide instruction
  uint64_t blocks = 0;
  uint64_t warps = 0;
  uint64_t generated = 0; // warp instructions executed by generated code
};

inline constexpr uint32_t maximum_call_depth = 4096; // activations of one warp at a time

// One of the 16 barriers of a block (PTX ISA 9.7.13.1). Arrivals are counted in warps.
struct Barrier {
  uint32_t arrived_warps = 0;
  uint32_t expected_warps = 0; // 0: all live warps of the block
  bool in_use = false;
  uint32_t true_count = 0; // barrier.red: predicates that were true
  bool all_true = true;
  uint32_t result_count = 0; // of the phase that completed last
  bool result_all = true;
};

// MicroOp::flags of a barrier: all lanes of a warp must execute the same one.
inline constexpr uint32_t barrier_aligned = 1;

// Stores the CUDA line of an instruction, from the `.loc` before it, in `failure`.
void find_source_line(const ir::Function& function, ir::InstructionId instruction, Failure& failure);

class BlockMachine;  // emulator/core/machine.h
class MachineRun;    // likewise
class MemoryChecker; // emulator/core/check.h
class GlobalShadow;  // emulator/memory/global_shadow.h
class Observer;
class LateCopies; // emulator/core/copies.h
class WarpGroups; // likewise
class TensorUnit; // likewise

// The data shared by all blocks of a launch.
struct LaunchState {
  KernelImage* image = nullptr;
  const LaunchRequest* request = nullptr;
  DeviceMemory* memory = nullptr;
  std::vector<std::byte> block_specials; // except %ctaid and %smid, which are written per block
  uint32_t threads = 0;
  uint32_t warps = 0;
  uint64_t shared_bytes = 0;
  uint64_t local_stride = 0;             // bytes of local memory of each thread
  bool concurrent = false;               // with other host threads that run blocks, or the program
  GlobalShadow* global_shadow = nullptr; // in check mode
  MachineRun* machine = nullptr;         // the machine that the launch runs on; nullptr: none
};

// A pool of activation frames: kernels without barriers run all warps in the same, cached bytes.
class FramePool {
public:
  explicit FramePool(MemoryBudget& budget) : share_(budget) {}
  // Returns nullptr if no memory is left.
  std::byte* take(uint32_t bytes);
  void give_back(std::byte* frame, uint32_t bytes);
  ~FramePool();

private:
  MemoryShare share_;
  std::vector<std::pair<uint32_t, std::vector<std::byte*>>> free_; // by size
  std::vector<std::byte*> all_;
};

// waiting: the block cannot continue until another block of the cluster has made progress.
enum class BlockState : uint8_t { running, yielded, waiting, finished, failed };

// The blocks of a running cluster. An address in shared::cluster is the rank of a block above shared_rank_shift, and an
// address in that block's shared memory below it; symbols and mapa give such addresses. (GPUs have the same encoding:
// there are programs that change bits of the rank.)
struct BlockCluster {
  std::vector<Block*> blocks;   // by %cluster_ctarank
  std::vector<bool> has_exited; // by %cluster_ctarank
};
inline constexpr unsigned shared_rank_shift = 24;
inline constexpr uint64_t shared_rank_bytes = uint64_t(1) << shared_rank_shift;
static_assert(largest_cluster * shared_rank_bytes <= window_size);

struct Block {
  Block(LaunchState& launch_state, WorkerCounters& worker_counters, FramePool& frame_pool,
        std::vector<std::byte>& thread_specials);
  ~Block();

  // Allocates the block's memory, before all other calls. Returns an error if the limit is exceeded.
  Status prepare();
  // Makes it block number `linear_index` of the grid, ready to run.
  void start(uint64_t linear_index);
  // Runs until the block is finished or has failed, or all its warps spin.
  BlockState run();
  // The same, with the warps taking turns as without a machine.
  BlockState run_warps();

  // --- for machines with their own order of warps ---
  // Starts the next warp at its first instruction (the block may fail then). Returns nullptr if all have started.
  Warp* start_next_warp();
  void start_all_warps();
  // Handles the end of a warp's turn, at a barrier or at its end; then the two cases.
  void settle(Warp& warp);
  void note_arrival(Warp& warp);
  void warp_finished(Warp& warp);
  // For a warp that has yielded: whether its position or its state is new since it began to wait.
  bool is_in_new_state(Warp& warp);
  void report_deadlock();

  // --- barrier.cluster (emulator/cluster/barrier.cpp) ---
  // Releases the cluster's waiting threads if all of its live threads have arrived. Returns false if some have not, or
  // if there are none.
  bool complete_cluster_barrier();
  bool waits_at_cluster_barrier() const;
  bool has_started(const Warp& warp) const { return &warp < warps.data() + next_to_start_; }

  // --- called by handlers ---
  const MicroOp* fail(Warp& warp, const MicroOp& op, unsigned lane, std::string message,
                      FailureKind kind = FailureKind::program_fault);
  // A fault with a name on GPUs.
  const MicroOp* fail(Warp& warp, const MicroOp& op, unsigned lane, std::string message, FaultKind fault);
  void end_activation(Warp& warp, Activation* activation);
  // Returns nullptr if no activation fits; call_failure() explains why.
  Activation* new_activation(Warp& warp, const DecodedFunction& function);
  std::string call_failure(const DecodedFunction& function) const;
  // All live lanes of the warp stand at barrier `number`: the warp has arrived.
  void warp_arrives(Warp& warp, unsigned number, uint32_t expected_warps);
  // The same for a warp without other splits at a barrier of all warps of the block: only a counter is incremented, and
  // the warp continues at `next`. Returns false if warps have arrived in another way, or if an observer needs the
  // splits.
  bool waits_whole(Warp& warp, unsigned number, const MicroOp* next) {
    if (!waits_whole_ || (whole_waiting != 0 && whole_number != number) || barriers[number].in_use) return false;
    warp.behind_barrier = next;
    warp.state = WarpState::waiting;
    whole_number = number;
    if (++whole_waiting == live_warps) release_whole();
    return true;
  }
  // Turns the warps that wait by waits_whole() into splits that wait at the barrier.
  void unfold_whole();
  // For a handler after waits_whole(): the warp that run_warps() would run next, if that was released from a barrier;
  // the handler runs it at once. Otherwise nullptr.
  Warp* take_next_turn(const Warp& warp) {
    const bool begins_round = warp.index + 1 == launch->warps;
    const uint32_t number = begins_round ? 0 : warp.index + 1;
    if (number >= next_to_start_) return nullptr;
    Warp& next = warps[number];
    if (!next.behind_barrier || next.state != WarpState::runnable) return nullptr;
    began_a_round_ |= begins_round;
    return &next;
  }
  // The return value of a handler after which `warp`, instead of the handler's own warp, continues at `next`.
  const MicroOp* hand_on(Warp& warp, const MicroOp* next) {
    handed_on_ = &warp;
    handed_on_at_ = next;
    return nullptr;
  }
  void complete_barrier_if_full(unsigned number);
  // False: the launch may take no more memory.
  bool take_memory(uint64_t bytes) { return share_.try_grow(bytes); }
  // Reads a clock for the lanes of warp.mask.
  uint64_t read_clock(const Warp& warp);
  // For an instruction that is more work than a warp instruction is otherwise.
  void take_fuel(uint64_t warp_instructions) { fuel -= static_cast<int64_t>(warp_instructions); }
  Dimensions thread_index(const Warp& warp, unsigned lane) const;
  // The failure's place in source and CUDA file.
  Failure describe(const Warp& warp, const MicroOp& op, unsigned lane, std::string message, FailureKind kind) const;

  LaunchState* launch = nullptr;
  KernelImage* image = nullptr;
  WorkerCounters* counters = nullptr;
  FramePool* frames = nullptr;
  std::byte* shared = nullptr;
  uint64_t shared_bytes = 0;
  std::byte* local = nullptr; // local_stride bytes per thread
  uint64_t local_stride = 0;
  BlockCluster* cluster = nullptr; // nullptr: the block is its own cluster
  uint32_t cluster_rank = 0;       // %cluster_ctarank
  std::span<const std::byte> parameters;
  std::array<Barrier, 16> barriers;
  uint32_t whole_waiting = 0, whole_number = 0; // warps that wait as waits_whole() says, and their barrier
  std::vector<Warp> warps;
  uint32_t live_warps = 0;
  int64_t fuel = 0;
  uint64_t counted_clock = 0;        // the part of the clock that has been charged to the launch's fuel
  uint64_t clock = 0;                // warp instructions this block has executed: ClockUnit::instructions
  std::vector<uint32_t> clock_reads; // by thread: number of clocks read; empty: ClockUnit::instructions
  uint64_t linear = 0;
  Dimensions index;
  std::optional<Failure> failure;
  PrintedText printed;
  std::unique_ptr<MemoryChecker> checker; // null: not asked for
  Observer* observer = nullptr;
  std::unique_ptr<BlockMachine> machine;   // its part in the block; null: none
  std::unique_ptr<LateCopies> late_copies; // null: asynchronous copies are carried out at once
  std::unique_ptr<WarpGroups> warp_groups; // null: no warp group has multiplied matrices yet
  std::unique_ptr<TensorUnit> tensor_unit; // null: no tensor memory has been allocated yet
  std::vector<uint32_t> warp_registers;    // of a thread, by warp, as setmaxnreg leaves them; empty: none was executed
  MemoryRange last_global;                 // where the last global access of a single lane went: most go there again
  std::vector<AccessSite> sites;           // of the memory operations of the image
  bool count_memory = false;
  bool watch_progress = false; // find out whether a turn changes anything; then:
  bool changed = false;        // the last one did, or it was not watched
  bool watch_memory = false;   // checker or count_memory: memory operations take the slow side road
  bool single_steps = false;   // a handler executes its own micro-operation only (access/access_run.h)

private:
  // Returns the warp that had the last of the turns.
  Warp& run_warp(Warp& warp);
  void run_from(Warp& warp, const MicroOp* op);
  void run_warp_observed(Warp& warp, const MicroOp* op);
  const MicroOp* run_warp_unseen(Warp& warp, const MicroOp* op);
  void start_warp(Warp& warp);
  void fill_cluster_specials();
  bool has_arrived_at_cluster_barrier(bool& anybody) const;
  void release_from_cluster_barrier();
  void release_whole();

  MemoryShare share_;
  bool waits_whole_ = false;  // nothing observes how warps wait
  Warp* handed_on_ = nullptr; // see hand_on()
  const MicroOp* handed_on_at_ = nullptr;
  bool began_a_round_ = false;                           // a turn taken by take_next_turn() is that of the first warp
  std::vector<std::unique_ptr<Activation>> activations_; // a failed block leaves some in use
  std::vector<Activation*> free_activations_;
  std::vector<std::byte>* thread_specials_;
  std::vector<std::byte> block_specials_;
  std::vector<std::byte> shared_storage_;
  uint32_t next_to_start_ = 0;
};

} // namespace ptxrewrite::emulator
