// What a warp's lanes have in common: values that are the same in all lanes, values whose five low bits are the lane's
// number, and places that no lane of a warp can miss.
//
// Where a warp lies in its block is a matter of the launch, so that the answers depend on what is assumed of it.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"
#include "ir/flow/dominators.h"

#include <optional>
#include <vector>

namespace ptxrewrite::transforms::warp {

// What is known of the block's shape. A later one implies the earlier ones' answers.
enum class BlockShape : uint8_t {
  any,
  // Threads of a warp have one tid.y and tid.z, and their tid.x count on from a multiple of 32: ntid.x is a multiple of
  // 32, or the block is a row.
  rows,
  // ntid.x is a multiple of 32.
  full_rows,
};

enum class LaneValue : uint8_t {
  unknown, // not met yet
  aligned, // the same in all lanes, a multiple of 32
  uniform, // the same in all lanes
  lane,    // the number of the lane
  row,     // bits 0-4 are the number of the lane, those above are the same in all lanes
  varying,
};

class WarpLanes {
public:
  // In SSA form; outlives this.
  WarpLanes(const ir::Function& function, const ir::DefUse& def_use, BlockShape shape);

  LaneValue of(ir::ValueId value) const { return values_[value.index()]; }
  LaneValue of(const ir::Operand& operand) const;
  bool is_uniform(ir::ValueId value) const {
    return of(value) == LaneValue::uniform || of(value) == LaneValue::aligned;
  }

  // Do all lanes that the warp was launched with come to this block together: has none of them left the kernel, or the
  // way to this block, at a branch that lanes may take differently? Never in device functions, and not behind calls.
  bool meets_whole_warp(ir::BlockId block) const { return !partial_[block.index()]; }

  // Is no lane but lane 0 among those that see the predicate as `wanted`?
  bool names_lane_zero(ir::ValueId predicate, bool wanted, unsigned depth = 4) const;

private:
  bool step();
  bool visit(ir::InstructionId id);
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
  std::vector<bool> joins_;       // by BlockId: lanes that parted meet, each with arguments of its own
  std::vector<bool> followed_;    // by BlockId: divergence at its end has been followed
};

} // namespace ptxrewrite::transforms::warp
