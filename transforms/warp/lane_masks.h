// Masks of lanes that are computed from the lane ID and are available as %lanemask_lt and the like.
#pragma once

#include "transforms/warp/warp_lanes.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms::warp {

struct LaneMask {
  ir::InstructionId root; // its result is the mask
  ir::SpecialRegister mask = ir::SpecialRegister::none;
  unsigned saved = 0; // instructions that become unused, including the root
};

// False if the function cannot have one: bit 0 of each mask depends on all bits of the lane ID. Sums, logic and shifts
// left by literals carry no bit down, and few shifts right by literals do not bring down all of them, so that an
// expression needs a shift by a register.
bool may_have_lane_masks(const ir::Function& function);

// 32-bit values that equal one of the five masks in each of the 32 lanes and are computed only from the lane ID and
// literals, if at least two instructions become unused. In text order; none is part of another.
std::vector<LaneMask> find_lane_masks(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes);

// "2 instructions -> %lanemask_lt"
std::string description(const LaneMask& mask);
// Instructions that only fed the mask's computation are left to ir/edit/dead_code.h.
void replace(ir::Function& function, const LaneMask& mask);

} // namespace ptxrewrite::transforms::warp
