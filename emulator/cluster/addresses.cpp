// mapa and getctarank (PTX ISA 9.7.9.23 and 9.7.9.24): addresses of the same variable in other blocks of the cluster,
// and the rank of an address. The encoding of ranks in addresses: BlockCluster in emulator/core/block.h.
#include "emulator/cluster/operations.h"
#include "emulator/core/address.h"
#include "emulator/core/block.h"
#include "emulator/core/decode.h"
#include "emulator/core/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t most_rank = window_size / shared_rank_bytes - 1; // the largest rank that fits into an address
constexpr uint32_t flag_generic = 1;

// Gets the lane's address in shared::cluster. Returns false after failing the block.
bool cluster_address(Warp& warp, const MicroOp& op, unsigned lane, uint64_t given, uint64_t& address) {
  address = given;
  if (op.flags & flag_generic) {
    const SpaceAddress split = split_generic(given);
    address = split.address;
    if (split.space != Space::shared) {
      warp.block->fail(
          warp, op, lane,
          fmt::format("{:#x} is a generic address of no shared memory, and has no place in a cluster", given),
          FaultKind::illegal_address);
      return false;
    }
  }
  return true;
}

// op.source: address (64 bits), rank.
const MicroOp* map_address(Warp& warp, const MicroOp& op) {
  const uint64_t* given = warp.lanes<uint64_t>(op.source[0]);
  const uint32_t* ranks = warp.lanes<uint32_t>(op.source[1]);
  uint64_t* mapped = warp.lanes<uint64_t>(op.destination[0]);
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    uint64_t address = 0;
    if (!cluster_address(warp, op, lane, given[lane], address)) return nullptr;
    // An invalid rank stays invalid, so that the access reports it.
    const uint64_t rank = std::min<uint64_t>(ranks[lane], most_rank);
    mapped[lane] = given[lane] - address + address % shared_rank_bytes + rank * shared_rank_bytes;
  }
  return &op + 1;
}

const MicroOp* rank_of_address(Warp& warp, const MicroOp& op) {
  const uint64_t* given = warp.lanes<uint64_t>(op.source[0]);
  uint32_t* ranks = warp.lanes<uint32_t>(op.destination[0]);
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    uint64_t address = 0;
    if (!cluster_address(warp, op, lane, given[lane], address)) return nullptr;
    ranks[lane] = static_cast<uint32_t>(std::min(address >> shared_rank_shift, most_rank));
  }
  return &op + 1;
}

uint32_t flags_of(const Decoder& decoder) {
  return decoder.form().space == ir::StateSpace::shared_cluster ? 0 : flag_generic;
}

void decode_mapa(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const LaneRef address = decoder.source(operands[decoder.top_level(1)], lanes_of_bits(64));
  const LaneRef rank = decoder.source(operands[decoder.top_level(2)], lanes_of_bits(32));
  const LaneRef target = decoder.destination(operands[0], lanes_of_bits(64));
  MicroOp& op = decoder.emit(&map_address);
  op.flags = flags_of(decoder);
  op.source[0] = address;
  op.source[1] = rank;
  op.destination[0] = target;
}

void decode_rank(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const LaneRef address = decoder.source(operands[decoder.top_level(1)], lanes_of_bits(64));
  const LaneRef target = decoder.destination(operands[0], lanes_of_bits(32));
  MicroOp& op = decoder.emit(&rank_of_address);
  op.flags = flags_of(decoder);
  op.source[0] = address;
  op.destination[0] = target;
}

} // namespace

void add_cluster_address_operations(OperationTable& table) {
  table.special("mapa*", &decode_mapa);
  table.special("getctarank*", &decode_rank);
}

} // namespace ptxrewrite::emulator
