// Relations between the lanes of a warp: values that are the same in all lanes, values whose five low bits are the lane
// ID, and program points that all lanes of a warp reach together.
//
// The position of a warp in its block depends on the launch, so the results depend on the assumed block shape.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"
#include "ir/flow/dominators.h"

#include <optional>
#include <vector>

namespace ptxrewrite::transforms::warp {

// Known facts about the block's shape. The results for a shape also hold for the following ones.
enum class BlockShape : uint8_t {
  any,
  // The threads of a warp have the same tid.y and tid.z, and consecutive tid.x that start at a multiple of 32: ntid.x
  // is a multiple of 32, or the block is one row.
  rows,
  // ntid.x is a multiple of 32.
  full_rows,
};

enum class LaneValue : uint8_t {
  unknown, // not visited yet
  aligned, // the same in all lanes, a multiple of 32
  uniform, // the same in all lanes
  lane,    // the lane ID
  row,     // bits 0-4 are the lane ID, the bits above are the same in all lanes
  varying,
};

class WarpLanes {
public:
  // The function must be in SSA form and outlive this object.
  WarpLanes(const ir::Function& function, const ir::DefUse& def_use, BlockShape shape);

  LaneValue of(ir::ValueId value) const { return values_[value.index()]; }
  LaneValue of(const ir::Operand& operand) const;
  bool is_uniform(ir::ValueId value) const {
    return of(value) == LaneValue::uniform || of(value) == LaneValue::aligned;
  }

  // Do all lanes with which the warp was launched reach this block together? False if a lane may have left the kernel,
  // or a divergent branch may lead around the block. Always false in device functions and after calls.
  bool meets_whole_warp(ir::BlockId block) const { return !partial_[block.index()]; }

  // Is lane 0 the only lane for which the predicate may have the value `wanted`?
  bool names_lane_zero(ir::ValueId predicate, bool wanted, unsigned depth = 4) const;

private:
  bool step();
  void visit(ir::InstructionId id);
  std::optional<int64_t> literal(const ir::Operand& operand) const;
  LaneValue result(ir::InstructionId id) const;
  LaneValue of_computation(ir::InstructionId id) const;
  LaneValue of_special(const ir::Operand& operand) const;
  LaneValue of_comparison(const ir::Form& form, const ir::Operand& a, const ir::Operand& b) const;
  bool lower(ir::ValueId value, LaneValue to);
  bool branch_is_uniform(ir::BlockId block) const;
  bool follow_divergence(ir::BlockId block);

  const ir::Function& function_;
  const ir::DefUse& def_use_;
  BlockShape shape_;
  ir::ControlFlow flow_;
  ir::DominatorTree dominators_;
  ir::PostDominatorTree post_dominators_;
  std::vector<LaneValue> values_; // by ValueId
  std::vector<bool> partial_;     // by BlockId: lanes may be missing
  std::vector<bool> joins_;       // by BlockId: divergent lanes reconverge here, each with its own arguments
  std::vector<bool> followed_;    // by BlockId: divergence at its end has been propagated
};

} // namespace ptxrewrite::transforms::warp
