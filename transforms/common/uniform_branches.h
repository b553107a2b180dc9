// Finds branches on which all lanes of a warp agree, so that they can be marked `bra.uni` for the assembler.
//
// A comparison of tid.x with a number differs within a warp only if the number is not a multiple of 32, provided that
// the warp's threads share one tid.y and tid.z. ptxas uses this only if it knows that the block is one row; otherwise
// it generates code for divergence and reconvergence.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptxrewrite::transforms::legal {

// Are all lanes of a warp on the same side of the comparison, provided that tid.x of a warp's first thread is a
// multiple of 32 and the other threads count up from it? `a` is tid.x + offset, compared with `bound` by lt or ge
// (`or_equal`: le or gt), in 32 bits.
bool parts_between_warps(int64_t offset, int64_t bound, bool or_equal);

// Branches of the function that could be `.uni` if no warp has threads of two rows of the block.
std::vector<ir::InstructionId> warp_uniform_branches(const ir::LinearForms& forms);
// Are the threads of each warp in one row of the block? Determined by .reqntid if present, otherwise by the launch.
enum class WarpsInRows : uint8_t { always, never, by_launch };
WarpsInRows warps_in_rows(const ir::Function& function);

void make_uniform(ir::Function& function, const std::vector<ir::InstructionId>& branches);

} // namespace ptxrewrite::transforms::legal
