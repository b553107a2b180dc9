#include "emulator/core/address.h"

#include <fmt/format.h>

namespace ptxrewrite::emulator {

const char* name_of(Space space) {
  switch (space) {
  case Space::generic:
    return "generic";
  case Space::global:
    return "global";
  case Space::shared:
    return "shared";
  case Space::local:
    return "local";
  case Space::constant:
    return "constant";
  case Space::parameter:
    return "parameter";
  case Space::cluster:
    return "shared::cluster";
  }
  return "";
}

SpaceAddress split_generic(uint64_t address) {
  auto in = [&](uint64_t window) { return address - window < window_size; };
  if (in(shared_window)) return {Space::shared, address - shared_window};
  if (in(local_window)) return {Space::local, address - local_window};
  if (in(constant_window)) return {Space::constant, address - constant_window};
  if (in(parameter_window)) return {Space::parameter, address - parameter_window};
  return {Space::global, address};
}

uint64_t window_of(Space space) {
  switch (space) {
  case Space::shared:
  case Space::cluster:
    return shared_window;
  case Space::local:
    return local_window;
  case Space::constant:
    return constant_window;
  case Space::parameter:
    return parameter_window;
  default:
    return 0;
  }
}

Block* block_at(Block& block, uint64_t cluster_address) {
  const BlockCluster& cluster = *block.cluster;
  const uint64_t rank = cluster_address >> shared_rank_shift;
  return rank < cluster.blocks.size() && !cluster.has_exited[rank] ? cluster.blocks[rank] : nullptr;
}

std::byte* resolve(Block& block, const Warp& warp, unsigned lane, Space space, uint64_t address, uint64_t bytes) {
  if (space == Space::generic) {
    const SpaceAddress split = split_generic(address);
    const Space found = split.space == Space::shared ? Space::cluster : split.space;
    return resolve(block, warp, lane, found, split.address, bytes);
  }
  auto inside = [&](std::byte* base, uint64_t size) -> std::byte* {
    return contains(0, size, address, bytes) ? base + address : nullptr;
  };
  switch (space) {
  case Space::shared:
    if (std::byte* own = inside(block.shared, block.shared_bytes)) return own;
    if (!block.cluster || address >> shared_rank_shift != block.cluster_rank) return nullptr;
    address %= shared_rank_bytes;
    return inside(block.shared, block.shared_bytes);
  case Space::cluster: {
    if (!block.cluster) return inside(block.shared, block.shared_bytes);
    const Block* owner = block_at(block, address);
    address %= shared_rank_bytes;
    return owner ? inside(owner->shared, owner->shared_bytes) : nullptr;
  }
  case Space::local:
    return inside(block.local + (uint64_t(warp.index) * warp_size + lane) * block.local_stride, block.local_stride);
  case Space::constant:
    return inside(block.image->constant_bank.data(), block.image->constant_bank.size());
  case Space::parameter:
    return inside(const_cast<std::byte*>(block.parameters.data()), block.parameters.size());
  default:
    break;
  }
  if (!block.last_global.contains(address, bytes)) {
    const MemoryRange range = block.launch->memory->find(address);
    if (!range.contains(address, bytes)) return nullptr;
    block.last_global = range;
  }
  return block.last_global.at(address);
}

namespace {

// Explains why an address in shared memory cannot be accessed: whose memory it would be, and its size.
std::string describe_shared(const Block& block, Space space, uint64_t address) {
  const uint64_t rank = address >> shared_rank_shift;
  if (!block.cluster || (rank == 0 && space == Space::shared) || rank == block.cluster_rank)
    return fmt::format("the block has {} bytes of shared memory", block.shared_bytes);
  if (rank >= block.cluster->blocks.size())
    return fmt::format("the cluster has {} blocks", block.cluster->blocks.size());
  if (space == Space::shared)
    return fmt::format("that is in block {} of the cluster, which only shared::cluster reaches", rank);
  if (block.cluster->has_exited[rank]) return fmt::format("block {} of the cluster has exited", rank);
  return fmt::format("block {} of the cluster has {} bytes of shared memory", rank,
                     block.cluster->blocks[rank]->shared_bytes);
}

} // namespace

const MicroOp* bad_access(Warp& warp, const MicroOp& op, unsigned lane, Space space, uint64_t address, uint64_t bytes,
                          const char* what) {
  Block& block = *warp.block;
  const bool was_generic = space == Space::generic;
  if (was_generic) {
    const SpaceAddress split = split_generic(address);
    space = split.space == Space::shared && block.cluster ? Space::cluster : split.space;
    address = split.address;
  }
  std::string where;
  switch (space) {
  case Space::global:
    where = block.launch->memory->describe(address);
    break;
  case Space::cluster:
    if (!block.cluster) space = Space::shared;
    [[fallthrough]];
  case Space::shared:
    where = describe_shared(block, space, address);
    break;
  case Space::local:
    where = fmt::format("the thread has {} bytes of local memory", block.local_stride);
    break;
  case Space::constant:
    where = fmt::format("there are {} bytes of constants", block.image->constant_bank.size());
    break;
  default:
    where = fmt::format("there are {} bytes of parameters", block.parameters.size());
    break;
  }
  if (bytes > 1 && address % bytes != 0 && resolve(block, warp, lane, space, address, bytes))
    return block.fail(warp, op, lane,
                      fmt::format("{} {} of {} bytes at {:#x}, which is not a multiple of {}", name_of(space), what,
                                  bytes, address, bytes),
                      FaultKind::misaligned_address);
  return block.fail(
      warp, op, lane,
      fmt::format("{} {} of {} bytes at {:#x} is out of bounds: {}", name_of(space), what, bytes, address, where),
      FaultKind::illegal_address);
}

} // namespace ptxrewrite::emulator
