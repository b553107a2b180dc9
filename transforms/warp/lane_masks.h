// Masks of lanes that are computed from the lane's number, which %lanemask_lt and its kin hold.
#pragma once

#include "transforms/warp/warp_lanes.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms::warp {

struct LaneMask {
  ir::InstructionId root; // whose result is the mask
  ir::SpecialRegister mask = ir::SpecialRegister::none;
  unsigned saved = 0; // instructions that nobody needs any more, the root among them
};

// Values of 32 bits that are one of the five masks in each of the 32 lanes, computed from nothing but the lane's number
// and literals; those alone for which at least two instructions go. In the order of the text; none is part of another.
std::vector<LaneMask> find_lane_masks(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes);

// "2 instructions -> %lanemask_lt"
std::string description(const LaneMask& mask);
// What only the mask's computation read stays for ir/edit/dead_code.h.
void replace(ir::Function& function, const LaneMask& mask);

} // namespace ptxrewrite::transforms::warp
