// The slow side of memory accesses: check mode (--check), the counting of transactions, observers that want to know of
// accesses. Memory instructions call it only when one of them is switched on.
#pragma once

#include "emulator/core/address.h"

namespace ptxrewrite::emulator {

enum class AccessKind : uint8_t { load, store, atomic };

// `addresses` of the active lanes (warp.mask), in `space` (generic when they lie in several windows); `bytes` each.
// `values` of a store: the lane arrays that it writes one behind the other; without them lanes that write the same are
// not told from lanes that disagree. False: the block has failed.
bool watch_access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                  AccessKind kind, std::span<const LaneRef> values = {});

// The same for reads of shared memory by the `number`-th matrix product that the warp's group has issued: they take
// place at any time until somebody has waited for it.
bool watch_product_reads(Warp& warp, const MicroOp& op, const uint64_t* addresses, uint64_t bytes, uint32_t number);

} // namespace ptxrewrite::emulator
