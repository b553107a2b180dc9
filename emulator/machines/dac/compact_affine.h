// CAE, the comparator of dac-isca17 §5.1.1: detects affine instructions at run time, warp by warp, and executes them in
// affine units beside the SIMT lanes. An operand is affine in a warp if consecutive lanes differ by one stride; results
// of loads never are, nor are values of diverged warps.
#pragma once

#include "emulator/core/observer.h"

#include <map>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

struct CompactAffineRow {
  const ir::Function* function = nullptr;
  ir::InstructionId instruction;
  uint64_t executions = 0; // by warps with at least one lane whose guard was true
  uint64_t affine = 0;     // of them, executed by an affine unit
};

class CompactAffine final : public ValueObserver {
public:
  void executing(const ObservedInstruction& at) override;
  void block_ended(Block& block) override;

  // By the instruction's number in the kernel.
  const std::map<uint32_t, CompactAffineRow>& rows() const { return rows_; }

private:
  std::vector<bool>& tags_of(const ObservedInstruction& at);

  std::map<uint32_t, CompactAffineRow> rows_;
  // Registers that hold affine values, by block, warp and function.
  std::map<uint64_t, std::map<uint32_t, std::unordered_map<const ir::Function*, std::vector<bool>>>> tags_;
};

} // namespace ptxrewrite::emulator
