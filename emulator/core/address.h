// Translates addresses of lanes to host memory.
#pragma once

#include "emulator/core/block.h"
#include "ir/isa/types.h"

namespace ptxrewrite::emulator {

// shared: of the block itself. cluster: of any block of the cluster (shared::cluster), which includes generic addresses
// in the window of shared memory.
enum class Space : uint8_t { generic, global, shared, local, constant, parameter, cluster };
const char* name_of(Space space);
Space decode_space(ir::StateSpace space);

// The host address of `bytes` bytes at a lane's address; nullptr if they are not all in one allocation or variable
// space. Generic addresses are resolved by window.
std::byte* resolve(Block& block, const Warp& warp, unsigned lane, Space space, uint64_t address, uint64_t bytes);

// The block of the cluster whose shared memory contains a shared::cluster address. nullptr if there is none or it has
// exited. Only for blocks that have a cluster.
Block* block_at(Block& block, uint64_t cluster_address);

// The space of a generic address, and the address in that space.
struct SpaceAddress {
  Space space = Space::global;
  uint64_t address = 0;
};
SpaceAddress split_generic(uint64_t address);
// The difference between a generic address and the address in `space`.
uint64_t window_of(Space space);

// Fails the warp with a message about this access.
const MicroOp* bad_access(Warp& warp, const MicroOp& op, unsigned lane, Space space, uint64_t address, uint64_t bytes,
                          const char* what);

} // namespace ptxrewrite::emulator
