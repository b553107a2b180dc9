// Legal form, candidate 4 of R2D2: persistent blocks. The grid becomes one resident wave of blocks, each of which walks
// over several of the planned ("virtual") blocks in a loop inside the kernel; what does not depend on the block index
// is computed in front of that loop.
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

// What a kernel has in it that shapes its persistent form.
struct PersistentNeeds {
  unsigned dimensions = 0;       // 1 to 3: the highest one of %ctaid that is read
  bool shared_memory = false;    // used again by the next virtual block
  bool block_barriers = false;   //
  bool warp_operations = false;  // shuffles, votes and the like
  bool warps_in_rows = false;    // right only if no warp has threads of two rows of the block
  bool async_copies = false;     // cp.async, which may be under way at the end
  bool counted_barriers = false; // some barrier is for a part of the block
  std::set<uint32_t> barriers;   // numbers of those in use

  // The barrier with which the block waits between virtual blocks; nothing if it needs none.
  std::optional<uint32_t> barrier_between() const;
};

struct PersistentCheck {
  PersistentNeeds needs;
  std::string refusal; // why the kernel cannot be made persistent; empty if it can
  SourceRange range;   // of what is in the way
};

// The function must be in SSA form. The rules are listed at the head of persistent_check.cpp.
PersistentCheck check_persistent(const ir::Function& function, PassContext& context);

// Rewrites a kernel for which check_persistent found nothing in the way. Other candidates may have rewritten it before:
// they move computation, and read the block index only where it was read.
void make_persistent(Attempt& attempt, const PersistentNeeds& needs);

// Moves what does not change from one trip of the loop at `header` to the next in front of it, to the end of
// `preheader`, as far as it saves instructions and keeps at most `register_limit` registers of 32 bits busy. The loop
// is all that `header` dominates. Returns how many instructions were moved.
size_t hoist_invariants(ir::Function& function, ir::BlockId preheader, ir::BlockId header, unsigned register_limit);

} // namespace ptxrewrite::transforms::legal
