// How much of what a kernel computes it has computed already: the limit studies WP and TB of r2d2 §2.2.
//
//   RedundancyStudy study;
//   program->launch({.kernel = "k", ..., .observer = &study});
//   study.rows(): by static instruction, how often its lanes agreed, and how often an earlier warp had done the same
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
  // WP: all active lanes have the same sources. One thread instruction would do.
  uint64_t uniform = 0;
  uint64_t uniform_lanes = 0;
  // TB: an earlier warp of the block has executed it for the same lanes with the same sources. None would do.
  uint64_t repeated = 0;
  uint64_t repeated_lanes = 0;
};

// An instruction whose sources cannot be seen (ObservedInstruction::complete) is never redundant. What memory holds is
// no source, nor is the guard: a load of the same address counts as the same. Sources of whole warps are compared by
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
  // Of blocks that run: which warps have executed an instruction with sources of this hash.
  std::map<uint64_t, std::unordered_map<uint64_t, uint32_t>> done_;
};

} // namespace ptxrewrite::emulator
