// The slow path of memory accesses: check mode (--check), counting of transactions, observers of accesses. Memory
// instructions call it only if one of them is enabled.
#pragma once

#include "emulator/core/address.h"

namespace ptxrewrite::emulator {

enum class AccessKind : uint8_t { load, store, atomic };

// `addresses` of the active lanes (warp.mask), in `space` (generic if they are in several windows); `bytes` each.
// `values` of a store: the lane arrays that it writes to consecutive memory; without them, equal values written by
// several lanes cannot be recognised. Returns false if the block has failed.
bool watch_access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                  AccessKind kind, std::span<const LaneRef> values = {});

// The same for reads of shared memory by the `number`-th matrix product that the warp's group has issued: they occur at
// any time until a wait for the product.
bool watch_product_reads(Warp& warp, const MicroOp& op, const uint64_t* addresses, uint64_t bytes, uint32_t number);

} // namespace ptxrewrite::emulator
