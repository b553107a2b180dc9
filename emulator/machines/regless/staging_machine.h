// RegLess's machine: an SM whose warps have only the registers in its operand staging units (RegLess §5). Runs the
// blocks that are resident on one SM, cycle by cycle, machine instruction by machine instruction.
//
// The machine is strict: an instruction that reads a register that is not staged, was released before or has lost
// lanes, an annotation that releases a register that is not staged, or a copy that is left over is a fault of the
// kernel, reported with region, instruction and register.
//
// Timing is simple: each scheduler issues one machine instruction per cycle, in the order of each warp and as soon as
// its operands are available, and beside it the warp's next one if it is independent and only one of both goes to
// memory or the special units (GTX 980). Operands wait for busy banks, preloads for idle tags, L1's port and miss
// registers (staging_ports.h); else results have fixed latencies. It determines the warps that run side by side and
// compete for entries, not the speed of a GPU.
#pragma once

#include "emulator/core/block.h"
#include "emulator/machines/regless/staging_counters.h"
#include "emulator/machines/regless/staging_plan.h"
#include "emulator/machines/regless/staging_ports.h"
#include "emulator/machines/regless/staging_unit.h"

#include <array>
#include <deque>
#include <vector>

namespace ptxrewrite::emulator {

class StagingMachine {
public:
  StagingMachine(const StagingPlan& plan, const StagingSettings& settings, StagingCounters& counters);

  // The number of resident blocks with this many warps.
  static uint32_t resident_blocks(const StagingPlan& plan, uint32_t warps, uint64_t shared_bytes);

  // Adds a block that was just started. There must be room for its warps.
  void add(Block& block);
  // Runs until a block has finished or failed; returns it, or nullptr if there is none.
  Block* run();

private:
  enum class State : uint8_t {
    absent,
    waiting,    // for other warps of its block
    inactive,   // on the warp stack
    preloading, //
    active,     //
    draining,   // until its last results are written
  };
  struct Context {
    State state = State::absent;
    Block* block = nullptr;
    Warp* warp = nullptr;
    const MicroOp* op = nullptr; // of `instruction`, the next one
    uint32_t instruction = 0;
    uint32_t region = UINT32_MAX; // the current region, or else the last one
    uint32_t expected = 0;        // position of the next instruction in it
    bool in_region = false;
    uint64_t wake = 0;   // preloading, draining
    uint32_t queued = 0; // preloads that wait for their banks' tags
    uint64_t activated = 0;
    uint64_t ready = 0; // active: the cycle in which the instruction's operands are available
    uint64_t started = 0;
    uint64_t age = 0;
    bool spins = false;
    uint32_t turns = 0;                // of loops that may wait for other warps
    bool unfinished = false;           // waits inside of `instruction`, which writes its results at the end of the wait
    uint32_t mask = 0;                 // lanes of the unfinished instruction
    size_t stood_back = 0;             // consecutive times, for other lanes of the warp
    std::vector<uint64_t> value_ready; // by index of the plan's values
    std::vector<std::byte> home;
    std::vector<uint16_t> leaving; // registers whose last results are pending
    std::array<uint64_t, 256> register_ready;
    BankCounts held{}, promised{};
  };

  // Request counts so far.
  struct Traffic {
    uint64_t l1 = 0, compressed = 0;
  };
  Traffic traffic() const;
  void pass(uint32_t slot, const Traffic& before);
  void pass(uint32_t slot, uint64_t l1_requests, uint64_t compressor_writes);

  bool start_regions(uint32_t shard);
  bool activate(uint32_t slot);
  bool issue(uint32_t shard);
  bool issue_second(uint32_t slot, StagedLatency first);
  bool look_up(uint32_t shard);
  uint64_t looked_up(const QueuedPreload& preload);
  uint64_t read_operands(uint32_t slot, const StagedInstruction& row);
  bool execute(uint32_t slot);
  const MicroOp* execute_free(Context& context, uint32_t slot, const StagedInstruction& row, const MicroOp* op);
  bool wait_inside(uint32_t slot, const StagedInstruction& row, uint32_t mask);
  bool leave_wait(uint32_t slot);
  BankCounts banks_of_results(uint32_t slot) const;
  bool complete(uint32_t slot, const MicroOp* next);
  void finish_region(uint32_t slot);
  bool leave_region(uint32_t slot);
  void go_on(uint32_t slot);
  void enter(uint32_t slot);
  void end_waiting(Warp& warp);
  bool stand_back(Context& context, const StagedRegion& region);
  uint64_t entries_free(uint32_t slot, const StagedInstruction& row);
  void collect(uint32_t slot);
  void block_changed(Block& block);
  void warp_ended(uint32_t slot);
  uint64_t next_event() const;

  bool prepare(Context& context, uint32_t slot, const StagedInstruction& row);
  bool fetch(Context& context, uint32_t slot, const StagedValue& value);
  bool check_reads(Context& context, uint32_t slot, const StagedInstruction& row, uint32_t mask);
  bool write_value(Context& context, uint32_t slot, const StagedValue& value, uint32_t mask);
  bool release(Context& context, uint32_t slot, const ir::RegisterSet& erase, const ir::RegisterSet& evict);
  void touch(uint32_t slot, const ir::RegisterSet& registers);
  const MicroOp* step(Context& context, const MicroOp& op);
  bool fail(Context& context, std::string_view message, unsigned lane = 0,
            FailureKind kind = FailureKind::program_fault);
  std::string name_of(uint16_t number) const;
  uint32_t code_index(const MicroOp& op) const { return static_cast<uint32_t>(&op - plan_->entry().code.data()); }

  const StagingPlan* plan_;
  bool stage_;
  StagingCounters* counters_;
  StagingUnit unit_;
  bool has_compressor_;
  std::vector<Context> contexts_;                           // by the SM's warp slots
  std::array<std::deque<uint32_t>, staging_shards> stacks_; // warp stacks; the last element is the top
  std::array<uint32_t, staging_shards> last_issued_{};      // has priority as long as it can issue
  std::array<uint64_t, staging_shards> issue_free_{};       // cycle
  std::array<uint64_t, staging_shards> compressor_free_{};  //
  std::vector<std::pair<Block*, bool>> over_;               // blocks, and whether they failed
  std::vector<std::vector<std::byte>> slots_;               // for StagedStep::save
  std::vector<uint64_t> window_of_;                         // by warp and register
  // Warps that have left a barrier with a result, for which there are no entries yet.
  std::array<std::deque<uint32_t>, staging_shards> returning_;
  static constexpr size_t banks_of_sm = size_t(staging_shards) * banks_of_staging;
  uint32_t issue_width_;
  std::array<BankPorts, banks_of_sm> ports_{};                  // by StagingUnit::bank_index
  std::array<std::deque<QueuedPreload>, banks_of_sm> queues_{}; //
  L1Ports l1_;
  uint64_t operands_read_ = 0; // by the instruction that executes: the cycle of the last one
  uint64_t now_ = 0, ages_ = 0, window_ = 1;
};

} // namespace ptxrewrite::emulator
