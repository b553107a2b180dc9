// Reductions of a warp by five shuffles, found and replaced: `redux.sync`, or votes where predicates are counted.
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
  and_,
  or_,
  xor_
};

struct ShuffleTree {
  static constexpr size_t stages = 5;
  Reduction reduction = Reduction::add;
  // shfl.down: the total is in lane 0 alone, other lanes hold sums of what lies behind them.
  bool is_down = false;
  ir::ValueId input, total;
  std::array<ir::InstructionId, stages> shuffles, steps;
  // A loop of one block that shuffles once in each of five trips: only the first ones of the arrays are there, and the
  // loop ends after its first trip if this predicate is what it is when it ends.
  ir::ValueId loop_test;
  bool ends_when = false;
  std::vector<ir::InstructionId> broadcasts; // shuffles of the total that give all lanes one lane's

  // Where the input is a predicate as a number 0 or 1: that predicate, and whether 1 stands for its complement.
  ir::ValueId predicate;
  bool is_complement = false;
};

// All trees over a whole warp, members of .sync with a full mask and nothing else between them read elsewhere.
std::vector<ShuffleTree> find_shuffle_trees(const ir::Function& function, const ir::DefUse& def_use);

// Do only lanes 0 read the total, broadcasts aside?
bool is_read_by_lane_zero_only(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes,
                               const ShuffleTree& tree);

// Has the module's version and target what the tree is replaced by?
bool is_replaceable(const ir::Module& module, const ShuffleTree& tree);
// "5 shfl.sync.bfly -> redux.sync.add.s32"
std::string description(const ShuffleTree& tree);
// All of them at once: loops lose their branches back.
void replace(ir::Function& function, const std::vector<ShuffleTree>& trees);

} // namespace ptxrewrite::transforms::warp
