// From addresses of lanes to bytes of the host.
#pragma once

#include "emulator/core/block.h"
#include "ir/isa/types.h"

namespace ptxrewrite::emulator {

// shared: of the block itself. cluster: of any block of the cluster (shared::cluster); generic addresses in the window
// of shared memory are such.
enum class Space : uint8_t { generic, global, shared, local, constant, parameter, cluster };
const char* name_of(Space space);
Space decode_space(ir::StateSpace space);

// Where `bytes` bytes at a lane's address lie; null when they are not all inside one allocation or variable space.
// Generic addresses are looked up by window.
std::byte* resolve(Block& block, const Warp& warp, unsigned lane, Space space, uint64_t address, uint64_t bytes);

// The block of the cluster whose shared memory holds a shared::cluster address. Null: there is none, or it has exited.
// Only for blocks that have a cluster.
Block* block_at(Block& block, uint64_t cluster_address);

// The space a generic address belongs to, and its address there.
struct SpaceAddress {
  Space space = Space::global;
  uint64_t address = 0;
};
SpaceAddress split_generic(uint64_t address);
// What a generic address has more than the address in `space`.
uint64_t window_of(Space space);

// Fails the warp: what is wrong with this access.
const MicroOp* bad_access(Warp& warp, const MicroOp& op, unsigned lane, Space space, uint64_t address, uint64_t bytes,
                          const char* what);

} // namespace ptxrewrite::emulator
