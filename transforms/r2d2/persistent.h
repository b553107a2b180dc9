// Legal form, candidate 4 of R2D2: persistent blocks. The grid is reduced to one resident wave of blocks. Each block
// iterates over several of the planned ("virtual") blocks in a loop inside the kernel; values that do not depend on the
// block index are computed before that loop.
//
//     k__r2d2<<<min(blocks the device holds at once, planned blocks)>>>
//       extents, first virtual index, hoisted coefficients and thread parts
//       while the index is inside the virtual grid:
//         the body of k, %ctaid and %nctaid replaced, `ret` a branch to here:
//         next index; wait for the block where shared memory is used again
//
// Any number of blocks in x, 1 in y and z, gives the same result.
#pragma once

#include "ir/core/function.h"
#include "transforms/common/attempt.h"
#include "transforms/manager/pass.h"

#include <array>
#include <optional>
#include <set>
#include <string>

namespace ptxrewrite::transforms::legal {

// Properties of a kernel that determine its persistent form.
struct PersistentNeeds {
  unsigned dimensions = 0;    // 1 to 3: the highest component of %ctaid that is read
  bool shared_memory = false; // reused by the next virtual block
  bool block_barriers = false;
  bool warp_operations = false;  // shuffles, votes and the like
  bool warps_in_rows = false;    // valid only if no warp has threads of two rows of the block
  bool async_copies = false;     // cp.async, which may be pending at the end
  bool counted_barriers = false; // some barrier counts only part of the block
  std::set<uint32_t> barriers;   // numbers in use

  // The number of the barrier at which the block waits between virtual blocks; nothing if it needs none.
  std::optional<uint32_t> barrier_between() const;
};

struct PersistentCheck {
  PersistentNeeds needs;
  std::string refusal; // why the kernel cannot be made persistent; empty if it can
  SourceRange range;   // of the instruction that prevents it
};

// The function must be in SSA form. The rules are listed at the head of persistent_check.cpp.
PersistentCheck check_persistent(const ir::Function& function, PassContext& context);

// Rewrites a kernel that check_persistent accepted. Other candidates may have rewritten it before: they move
// computation, but read the block index only where the original did.
void make_persistent(Attempt& attempt, const PersistentNeeds& needs);

// Hoists loop-invariant instructions of the loop at `header` to the end of `preheader`, as far as this saves
// instructions and keeps at most `register_limit` 32-bit registers occupied. The loop consists of all blocks that
// `header` dominates. Returns the number of instructions moved.
size_t hoist_invariants(ir::Function& function, ir::BlockId preheader, ir::BlockId header, unsigned register_limit);

} // namespace ptxrewrite::transforms::legal
