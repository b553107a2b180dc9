// DARSIE's machine in one block (darsie §4.3 to §4.5): warps on the majority path take turns instruction by
// instruction; the first one to reach a redundant instruction executes it for all, the others take its result.
//
// A history of the blocks that a warp has entered replaces the paper's version numbers of registers. At a barrier of
// all warps those at the same place, in the same trips of the loops around it, return to the path: their history starts
// there.
#pragma once

#include "emulator/core/machine.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "emulator/machines/darsie/skip_plan.h"
#include "emulator/machines/darsie/skip_table.h"

#include <set>
#include <vector>

namespace ptxrewrite::emulator {

const MachineModel& darsie_machine();

// The data shared by all blocks of a launch.
struct SkipLaunch {
  SkipLaunch(const KernelImage& image, std::span<const ir::DarsieMark> marks, const LaunchRequest& request);

  SkipSettings settings;
  SkipPlan plan;
  SkipCounters counters;
  std::vector<uint64_t> fences; // fences and atomics so far, by %smid
};

class SkipMachine final : public BlockMachine {
public:
  SkipMachine(Block& block, SkipLaunch& launch);

  void start_block() override;
  // Like Block::run_warps, except that warps take turns after each instruction.
  BlockState run(Block& block) override;
  void barrier_completed(uint32_t warps) override;

private:
  // All warps get one turn in a round; returns the warp of turn `turn`.
  void begin_round();
  Warp& warp_of_turn(uint32_t turn);
  bool run_round(uint32_t& spun);
  uint32_t able_warps(uint32_t& spun);
  // Executes or skips an instruction of the warp, or several (with a random order); it may then wait for others.
  void take_turn(Warp& warp);
  bool waits(const Warp& warp) const { return waiting_ >> warp.index & 1; }
  // No warp can run except those that may spin (if `others_run`) or wait: all leave the path, unless spinning warps get
  // more time. Returns false if no warp waits.
  bool give_up_waiting(bool others_run);
  void warp_finished(const Warp& warp);

  enum class Wait : uint8_t { none, branch, registers };
  struct State {
    bool on_path = false;
    Wait wait = Wait::none;
    uint64_t history = 0;       // of the blocks entered since the path was formed
    uint64_t whole_history = 0; // since the start
    Progress progress;          // of the last instruction begun
    ir::BlockId last_block;
    std::vector<uint32_t> trips; // by ir::LoopId
  };

  void step(Warp& warp);
  const MicroOp* begin_instruction(Warp& warp, const MicroOp& first, const SkipPlace& place);
  const MicroOp* begin_redundant(Warp& warp, const MicroOp& first, const SkipPlace& place);
  const MicroOp* follow(Warp& warp, const MicroOp& first, const SkipPlace& place, SkipEntry& entry);
  const MicroOp* lead(Warp& warp, const MicroOp& first, const SkipPlace& place);
  const MicroOp* execute_alone(Warp& warp, const MicroOp& first, const SkipPlace& place);
  const MicroOp* execute_instruction(Warp& warp, const MicroOp& first, const SkipPlace& place);
  const MicroOp* execute(Warp& warp, const MicroOp& op);
  void suspend(Warp& warp, const MicroOp* next);
  const MicroOp* wait_for_others(Warp& warp, const MicroOp& first, Wait wait);

  void enter_block(Warp& warp, uint32_t block);
  void apply_effects(uint32_t instruction);
  void take_results(const Warp& warp, const RedundantInstruction& what, const SkipEntry& entry);
  void keep_results(const Warp& warp, const RedundantInstruction& what, const SkipEntry& entry);
  // The first lane and result in which the warp's value differs from the shared one; "" if none does.
  std::string difference(const Warp& warp, const RedundantInstruction& what, const SkipEntry& entry,
                         unsigned& lane) const;
  void count_skipped_guard(const Warp& warp, const SkipPlace& place);

  void leave_path(uint32_t warp);
  void remove_from_table(uint32_t warp);
  void forget_who_passed();
  bool sync_would_help(uint32_t warp, const SkipPlace& place) const;
  void release_waiting();
  bool release_registers();
  void release_branch();
  void make_path(uint32_t candidates);
  uint64_t instance_of(const State& state) const;

  uint32_t code_index(const MicroOp& op) const { return static_cast<uint32_t>(&op - plan_->entry().code.data()); }
  State& state_of(const Warp& warp) { return states_[warp.index]; }
  bool has_branch_sync() const { return settings_.variant != SkipVariant::no_branch_sync; }
  uint64_t& fences() { return launch_->fences[block_->linear % emulated_sm_count]; }
  uint64_t random();

  Block* block_;
  SkipLaunch* launch_;
  const SkipPlan* plan_;
  SkipSettings settings_;
  SkipCounters* counters_;
  RenameTable registers_;
  SkipTable table_;
  std::vector<State> states_; // by warp
  uint32_t path_ = 0, waiting_ = 0;
  unsigned fruitless_turns_ = 0; // of all running warps, since a wait last ended
  Progress resolved_;            // the place of the last register synchronisation
  std::set<uint32_t> probed_;    // in this round
  std::vector<uint32_t> turns_;  // order of the round
  uint64_t random_state_ = 0;
};

} // namespace ptxrewrite::emulator
