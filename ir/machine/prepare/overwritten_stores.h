// Stores whose word is stored again before it can be read: ptxas removes them. Private to ir/machine.
//
// Both stores are in one block, not under a predicate, of the same size and to the same address. Between them stands no
// other access to the same memory (shared, local, global) except ld.global.nc, no access by a generic address, no
// atomic operation, barrier, fence or call: ptxas compares no addresses here.
#pragma once

#include "ir/core/function.h"

#include <vector>

namespace ptxrewrite::ir {

// Removes them. Returns true if there are any.
bool drop_overwritten_stores(Function& function);

// Stores of a loop of one block that the loop's next trip overwrites: only the last of several copies has them.
std::vector<InstructionId> stores_overwritten_by_next_trip(const Function& function, BlockId loop);

} // namespace ptxrewrite::ir
