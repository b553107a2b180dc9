// The share of computations that a kernel repeats: the limit studies WP and TB of r2d2 §2.2.
//
//   RedundancyStudy study;
//   program->launch({.kernel = "k", ..., .observer = &study});
// study.rows(): by static instruction, how often its lanes had equal sources, and how often an earlier warp had them
#pragma once

#include "emulator/core/observer.h"

#include <map>
#include <unordered_map>

namespace ptxrewrite::emulator {

struct RedundancyRow {
  const ir::Function* function = nullptr;
  ir::InstructionId instruction;
  uint64_t executions = 0; // by warps with at least one lane whose guard was true
  uint64_t lanes = 0;
  // WP: all active lanes have the same sources. One thread instruction suffices.
  uint64_t uniform = 0;
  uint64_t uniform_lanes = 0;
  // TB: an earlier warp of the block executed it for the same lanes with the same sources. It could be skipped.
  uint64_t repeated = 0;
  uint64_t repeated_lanes = 0;
};

// An instruction whose sources cannot be observed (ObservedInstruction::complete) is never redundant. Memory contents
// and guards are not sources: two loads of the same address count as equal. Sources of whole warps are compared by
// 64-bit hashes.
class RedundancyStudy final : public ValueObserver {
public:
  void executing(const ObservedInstruction& at) override;
  void block_ended(Block& block) override;

  // By the instruction's number in the kernel.
  const std::map<uint32_t, RedundancyRow>& rows() const { return rows_; }
  RedundancyRow total() const;

private:
  std::map<uint32_t, RedundancyRow> rows_;
  // For running blocks: the set of warps that executed an instruction with sources of this hash.
  std::map<uint64_t, std::unordered_map<uint64_t, uint32_t>> done_;
};

} // namespace ptxrewrite::emulator
