// Finds reductions of a warp by five shuffles and replaces them by `redux.sync`, or by votes if predicates are counted.
#pragma once

#include "transforms/warp/warp_lanes.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::warp {

enum class Reduction : uint8_t {
  add,
  minimum_signed,
  minimum_unsigned,
  maximum_signed,
  maximum_unsigned,
  minimum_float,
  maximum_float,
  minimum_float_or_nan,
  maximum_float_or_nan,
  and_,
  or_,
  xor_
};

struct ShuffleTree {
  static constexpr size_t stages = 5;
  Reduction reduction = Reduction::add;
  // shfl.down: the total is in lane 0 only; other lanes hold partial sums.
  bool is_down = false;
  ir::ValueId input, total;
  std::array<ir::InstructionId, stages> shuffles, steps;
  std::vector<ir::InstructionId> copies; // to registers that are shuffled, and back
  // A single-block loop that shuffles once in each of five trips: only the first elements of the arrays are set. The
  // loop is left when this predicate equals `ends_when`, which ends the rewritten loop after its first trip.
  ir::ValueId loop_test;
  bool ends_when = false;
  std::vector<ir::InstructionId> broadcasts; // shuffles that distribute one lane's total to all lanes

  // If the input is a predicate converted to 0 or 1: that predicate, and whether 1 stands for its complement.
  ir::ValueId predicate;
  bool is_complement = false;
};

// Finds all trees over a whole warp: .sync members with a full mask, without other readers of the intermediate values.
std::vector<ShuffleTree> find_shuffle_trees(const ir::Function& function, const ir::DefUse& def_use);

// Is the total, apart from broadcasts, read only by lane 0?
bool is_read_by_lane_zero_only(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes,
                               const ShuffleTree& tree);

// Do the module's version and target support the replacement of the tree?
bool is_replaceable(const ir::Module& module, const ShuffleTree& tree);
// "5 shfl.sync.bfly -> redux.sync.add.s32"
std::string description(const ShuffleTree& tree);
// Replaces all of them at once, because loops lose their back edges.
void replace(ir::Function& function, const std::vector<ShuffleTree>& trees);

} // namespace ptxrewrite::transforms::warp
