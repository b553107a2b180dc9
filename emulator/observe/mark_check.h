// Checks DARSIE's marks against the results of the warps of a block, and counts how many repeated results are marked.
//
//   MarkCheck check;
//   program->launch({.kernel = "k", ..., .observer = &check});
//   check.rows(): by static instruction; check.contradictions(): a marked result differed
//
// It compares instances (darsie, "Accepted when"): executions of one static instruction by warps with all lanes active
// that took the same branches since the last barrier of the block; of loads, only if no store, atomic or fence was
// executed in between. This is stricter than comparing branches from the start of the kernel, in line with the machine:
// a barrier brings warps back to one path.
#pragma once

#include "emulator/core/observer.h"
#include "ir/forms/darsie_mark.h"

#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

struct MarkRow {
  const ir::Function* function = nullptr;
  ir::InstructionId instruction;
  ir::DarsieMark mark;                        // as computed or written
  ir::DarsieMark promoted;                    // for the block shape of the launch
  uint64_t executions = 0;                    // by warps with all lanes active; of instructions with a result
  uint64_t repeated = 0;                      // with the result of an earlier warp of the block in the same instance
  std::array<uint64_t, 3> repeated_by_kind{}; // of these, by MarkKind of the measured result
  uint64_t contradicted = 0;                  // marked, but the result differs from that of an earlier warp
};

class MarkCheck final : public ValueObserver {
public:
  void executing(const ObservedInstruction& at) override;
  void executed(const ObservedInstruction& at) override;
  void passed(Block& block, Warp& warp, const MicroOp& op) override;
  void block_ended(Block& block) override;

  // By function and instruction, over all launches so far.
  std::vector<MarkRow> rows() const;
  uint64_t contradictions() const { return contradictions_; }
  // Descriptions of the first contradictions: "k: add.u32 %r3, %r2, 5; (DR uniform): block 3, warps 0 and 2".
  const std::vector<std::string>& messages() const { return messages_; }
  // For tests of the check itself: treats every result as marked.
  void mark_everything() { mark_everything_ = true; }

private:
  struct FunctionMarks {
    std::vector<ir::DarsieMark> marks;
  };
  struct Seen {
    uint64_t result = 0;
    uint64_t stores = 0; // executed before it
    uint32_t warp = 0;
  };
  struct Histories {
    std::vector<uint64_t> branches; // by warp: hash of the branches since the last barrier, and of all barriers
    std::vector<uint64_t> barriers; // by warp
    std::unordered_map<uint64_t, Seen> instances;
  };
  using Key = std::pair<const ir::Function*, ir::InstructionId>;

  MarkRow& row_of(const Block& block, const ir::Function& function, ir::InstructionId instruction);
  Histories& histories_of(const Block& block);
  void contradict(MarkRow& row, const ObservedInstruction& at, const Seen& earlier);

  std::map<Key, MarkRow> rows_;
  std::map<const ir::Function*, FunctionMarks> marks_;
  std::map<uint64_t, Histories> blocks_; // of running blocks
  uint64_t stores_ = 0;                  // stores, atomics and fences so far
  uint64_t contradictions_ = 0;
  std::vector<std::string> messages_;
  bool mark_everything_ = false;
};

} // namespace ptxrewrite::emulator
