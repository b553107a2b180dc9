// Branches that whole warps take alike, told to the assembler: `bra.uni`.
//
// A comparison of tid.x with a number changes within a warp only where the number is no multiple of 32, if a warp's
// threads have one tid.y and tid.z. ptxas looks for that only where it knows that the block is one row, and else
// prepares for lanes that part and meet again.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptxrewrite::transforms::legal {

// Where lanes of a warp part: none, if the warp's first thread has a tid.x that is a multiple of 32 and the others
// count on from there. `a` is tid.x + offset, compared with `bound` by lt or ge (`or_equal`: le or gt), in 32 bits.
bool parts_between_warps(int64_t offset, int64_t bound, bool or_equal);

// Branches of the function that could be `.uni` if no warp has threads of two rows of the block.
std::vector<ir::InstructionId> warp_uniform_branches(const ir::LinearForms& forms);
// Is that so? By .reqntid, or else the launch tells.
enum class WarpsInRows : uint8_t { always, never, by_launch };
WarpsInRows warps_in_rows(const ir::Function& function);

void make_uniform(ir::Function& function, const std::vector<ir::InstructionId>& branches);

} // namespace ptxrewrite::transforms::legal
