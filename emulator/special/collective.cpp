#include "emulator/special/collective.h"

#include <fmt/format.h>

#include <bit>

namespace ptxrewrite::emulator::detail {

bool complete_groups(Warp& warp, const MicroOp& op, const uint32_t* member_lanes, LaneGroups& groups,
                     uint32_t& members) {
  bool complete = true;
  for (uint32_t rest = warp.mask; rest;) {
    const uint32_t wanted = member_lanes[std::countr_zero(rest)];
    uint32_t lanes = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane)
      lanes |= static_cast<uint32_t>(member_lanes[lane] == wanted) << lane;
    lanes &= rest;
    groups.lanes[groups.count++] = lanes;
    const uint32_t present = lanes | (warp.active & ~warp.mask);
    complete = complete && (wanted & warp.live & ~present) == 0 && (lanes & ~wanted) == 0;
    rest &= ~lanes;
  }
  if (complete) return true;
  // Some lanes wait for lanes elsewhere: each group becomes a split until they reconverge.
  for (unsigned i = 1; i < groups.count; ++i)
    warp.splits.push_back({&op, warp.activation, groups.lanes[i], warp.meeting, SplitState::runnable, 0});
  if (const uint32_t off = warp.active & ~warp.mask)
    warp.splits.push_back({&op + 1, warp.activation, off, warp.meeting, SplitState::runnable, 0});
  warp.active = warp.mask = groups.lanes[0];
  members = member_lanes[std::countr_zero(warp.mask)];
  return false;
}

const MicroOp* not_a_member(Warp& warp, const MicroOp& op, uint32_t members) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask & ~members));
  return warp.block->fail(
      warp, op, lane,
      fmt::format("lane {} executes this with member mask {:#010x}, which it is not in", lane, members));
}

} // namespace ptxrewrite::emulator::detail
