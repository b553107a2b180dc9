// DAC's machine in one SM (dac-isca17 §4.1, Fig. 9): the affine warp, the expansion units and the warps of the resident
// blocks take turns. In a turn, each warp executes an instruction, the affine warp one or several, and each unit serves
// each warp once. An observer sees the other warps' instructions as on any machine, and the affine warp's.
#pragma once

#include "emulator/core/machine.h"
#include "emulator/machines/dac/affine_check.h"
#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/dac/affine_warp.h"
#include "emulator/machines/dac/line_locks.h"

#include <memory>
#include <span>
#include <vector>

namespace ptxrewrite::emulator {

class AffineMachine;
const MachineModel& dac_machine();

// The machine's data of a block: its slot among the blocks of a batch.
struct AffineBlock final : BlockMachine {
  explicit AffineBlock(AffineMachine& its_machine);
  void barrier_completed(uint32_t warps) override;
  void barrier_arrived(const Warp& warp) override;
  // No warp waits in a loop for others, and a warp's lanes must keep the order of the affine stream.
  bool keeps_order() const override { return true; }

  AffineMachine* machine;
  uint32_t slot = 0;
};
// Returns nullptr if the block runs on another machine or none.
AffineBlock* affine_block(const Block& block);

class AffineMachine {
public:
  // `check`: nullptr if check mode is off. All arguments must outlive the machine.
  AffineMachine(BlockSource& source, const AffineProgram& program, const AffineSettings& settings, AffineCheck* check);

  // Runs these blocks of the grid, which are resident on an SM together, to their end. Returns false on `failure()`, on
  // `gave_up()`, or if there is no memory for the blocks.
  bool run_batch(std::span<const uint64_t> linear);

  const std::optional<Failure>& failure() const { return failure_; }
  const std::string& gave_up() const { return gave_up_; } // why the machine is too small for the kernel
  AffineCounters& counters() { return counters_; }
  // The blocks of the latest batch.
  std::vector<std::unique_ptr<Block>>& blocks() { return blocks_; }

  // --- called by the handlers of queue operations (affine_decode.cpp) ---
  const MicroOp* dequeue_address(Warp& warp, const MicroOp& op);
  const MicroOp* dequeue_predicate(Warp& warp, const MicroOp& op);
  const MicroOp* give_predicate(Warp& warp, const MicroOp& op);
  // Warps of the block in this slot pass a barrier, or have signalled their arrival without waiting.
  void barrier_passed(uint32_t slot, uint32_t warps);

private:
  struct AddressRecord {
    TupleKind kind = TupleKind::data;
    uint32_t site = 0;
    uint64_t number = 0;
    WarpAddresses access;
    std::vector<uint64_t> locked; // lines
    uint64_t ready = 0;           // the turn in which the data arrive
  };
  struct PredicateRecord {
    uint32_t site = 0;
    uint32_t lanes = 0;
    uint32_t bits = 0;
  };
  // The queues between the affine warp and one other warp.
  struct Link {
    explicit Link(size_t entries) : addresses(entries), predicates(entries) {}
    BoundedQueue<AddressRecord> addresses;
    BoundedQueue<PredicateRecord> predicates;
    uint64_t barriers_passed = 0, barriers_seen = 0; // by the warp, and by expansion for it
  };

  void start_batch(std::span<const uint64_t> linear);
  bool step_affine_warp();
  bool expand_for(uint32_t warp);
  bool expand_address(uint32_t warp, const QueuedTuple& tuple);
  bool request(AddressRecord& record);
  bool step_warps();
  bool step(Warp& warp, Link& link);
  bool must_wait(const Warp& warp, const MicroOp& op, Link& link);
  const MicroOp* execute(Warp& warp, const MicroOp& op);
  void suspend(Warp& warp, const MicroOp* next);
  bool is_over() const;
  bool check_end();
  void report_affine(std::string message);
  void report_deadlock();
  const MicroOp* mismatch(Warp& warp, const MicroOp& op, const std::string& what);

  uint32_t number_of(const Warp& warp) const {
    return static_cast<const AffineBlock&>(*warp.block->machine).slot * launch_->warps + warp.index;
  }

  BlockSource* source_;
  LaunchState* launch_;
  const AffineProgram* program_;
  AffineCheck* check_;
  AffineSettings settings_;
  AffineCounters counters_;
  std::optional<Failure> failure_;
  std::string gave_up_;

  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<BlockState> states_;
  std::optional<AffineBatch> batch_;
  std::optional<TupleQueue> queue_;
  std::vector<Link> links_; // by warp of the batch
  std::vector<BoundedQueue<GivenPredicate>> given_;
  std::unique_ptr<AffineWarp> warp_;
  std::optional<LineLocks> locks_;
  uint64_t turn_ = 0;
  uint64_t idle_turns_ = 0; // turns in which only spinning warps executed
  bool somebody_waits_for_memory_ = false;
};

// The number of blocks of such a launch that an SM of a GTX 480 holds, ignoring registers.
uint32_t default_resident_blocks(uint32_t threads, uint64_t shared_bytes);

} // namespace ptxrewrite::emulator
