// cp.async and st.bulk (PTX ISA 9.7.9.25 and 9.7.9.13). A copy is carried out when it is issued,
// or when a thread waits for it (emulator/core/copies.h): a kernel that waits correctly gets the same results.
#include "emulator/core/check.h"
#include "emulator/core/copies.h"
#include "emulator/core/watch.h"
#include "emulator/special/async_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

// MicroOp::flags: a Space in the low byte, widths of addresses (async_access.h), and
constexpr uint32_t flag_ignore = 1u << 16; // op.source[2] is a predicate: if true, nothing is read

// --- cp.async ---

// op.source: destination, source, bytes to read or predicate. op.count: bytes to write. op.immediate: both offsets.
const MicroOp* copy_async(Warp& warp, const MicroOp& op) {
  const auto offsets = std::bit_cast<CopyOffsets>(op.immediate);
  const bool narrow_to = op.flags & flag_narrow_first, narrow_from = op.flags & flag_narrow_second;
  uint64_t to[warp_size], from[warp_size];
  all_addresses(warp, op.source[0], narrow_to, offsets.to, to);
  all_addresses(warp, op.source[1], narrow_from, offsets.from, from);
  uint64_t wanted[warp_size]; // bytes to read
  uint32_t readers = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    wanted[lane] = op.count;
    if (op.flags & flag_ignore)
      wanted[lane] = (warp.predicate(op.source[2]) >> lane) & 1 ? 0 : op.count;
    else if (op.source[2])
      wanted[lane] = std::min<uint64_t>(warp.lanes<uint32_t>(op.source[2])[lane], op.count);
    readers |= static_cast<uint32_t>(wanted[lane] != 0) << lane;
  }
  if (warp.block->watch_memory) {
    const uint32_t mask = warp.mask;
    warp.mask &= readers;
    if (warp.mask && !watch_access(warp, op, Space::global, from, op.count, AccessKind::load)) return nullptr;
    warp.mask = mask;
    if (!watch_access(warp, op, Space::shared, to, op.count, AccessKind::store)) return nullptr;
  }
  return for_each_lane(warp, op, [&](unsigned lane) {
    if (!has_room_for_copy(warp, op, lane)) return false;
    PendingCopy copy{nullptr, nullptr, op.count, static_cast<uint32_t>(wanted[lane])};
    if (wanted[lane]) {
      copy.from = lane_bytes(warp, op, lane, Space::global, from[lane], wanted[lane], op.count, "asynchronous load");
      if (!copy.from) return false;
    }
    copy.to = lane_bytes(warp, op, lane, Space::shared, to[lane], op.count, op.count, "asynchronous store");
    if (!copy.to) return false;
    if (LateCopies* late = warp.block->late_copies.get())
      late->add(CopyKind::plain, warp.index * warp_size + lane, copy);
    else
      carry_out(copy);
    return true;
  });
}

// Only in blocks with late copies; op.immediate: number of groups that may stay open, -1: not even the current one.
template <CopyKind kind> const MicroOp* wait_for_groups(Warp& warp, const MicroOp& op) {
  LateCopies* late = warp.block->late_copies.get();
  if (!late) return &op + 1;
  return for_each_lane(warp, op, [&](unsigned lane) {
    const uint32_t thread = warp.index * warp_size + lane;
    if (op.immediate < 0)
      late->wait_for_all(kind, thread);
    else
      late->wait(kind, thread, static_cast<uint32_t>(op.immediate));
    return true;
  });
}

template <CopyKind kind> const MicroOp* close_group(Warp& warp, const MicroOp& op) {
  LateCopies* late = warp.block->late_copies.get();
  if (!late) return &op + 1;
  return for_each_lane(warp, op, [&](unsigned lane) {
    late->close_group(kind, warp.index * warp_size + lane);
    return true;
  });
}

// --- st.bulk ---

// Fills op.source[1] bytes of shared memory with zeros.
const MicroOp* store_zeros(Warp& warp, const MicroOp& op) {
  const auto space = static_cast<Space>(op.flags & 0xff);
  return for_each_lane(warp, op, [&](unsigned lane) {
    const uint64_t address = lane_address(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, lane);
    const uint64_t bytes = warp.lanes<uint64_t>(op.source[1])[lane];
    std::byte* host = lane_bytes(warp, op, lane, space, address, bytes, 8, "bulk store");
    if (!host) return false;
    if (warp.block->watch_memory) {
      uint64_t addresses[warp_size];
      std::fill_n(addresses, warp_size, address);
      const uint32_t mask = std::exchange(warp.mask, 1u << lane);
      if (!watch_access(warp, op, space, addresses, bytes, AccessKind::store)) return false;
      warp.mask = mask;
    }
    warp.block->take_fuel(bytes / bytes_like_an_instruction);
    std::memset(host, 0, bytes);
    return true;
  });
}

// --- decoding ---

bool is_predicate_operand(const Decoder& decoder, const ir::Operand& operand) {
  return operand.is(ir::OperandKind::value) && decoder.register_bits(operand.as_value()) == 1;
}

void decode_copy(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  const AddressSource to = address_source(decoder, 0), from = address_source(decoder, 1);
  using Limits = std::numeric_limits<int32_t>;
  for (int64_t offset : {to.offset, from.offset})
    if (offset < Limits::min() || offset > Limits::max()) return decoder.unsupported("an offset of more than 32 bits");
  const unsigned optional_count = decoder.top_level_count() - 3 - (form.has(ir::Modifier::L2_cache_hint) ? 1 : 0);
  LaneRef limit;
  uint32_t flags = (to.narrow ? flag_narrow_first : 0) | (from.narrow ? flag_narrow_second : 0);
  if (optional_count > 0) {
    const ir::Operand& operand = operands[decoder.top_level(3)];
    const bool ignores = is_predicate_operand(decoder, operand);
    limit = decoder.source(operand, lanes_of_bits(ignores ? 1 : 32));
    if (ignores) flags |= flag_ignore;
  }
  MicroOp& op = decoder.emit(&copy_async);
  op.flags = flags;
  op.count = static_cast<uint8_t>(operands[decoder.top_level(2)].immediate);
  op.source[0] = to.base;
  op.source[1] = from.base;
  op.source[2] = limit;
  op.immediate =
      std::bit_cast<int64_t>(CopyOffsets{static_cast<int32_t>(to.offset), static_cast<int32_t>(from.offset)});
}

// Decodes commits and waits. Returns false if the instruction is something else.
bool decode_groups(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  const bool bulk = form.has(ir::Modifier::bulk);
  if (form.has(ir::Modifier::commit_group)) {
    decoder.emit(bulk ? &close_group<CopyKind::bulk> : &close_group<CopyKind::plain>);
    return true;
  }
  const bool all = form.has(ir::Modifier::wait_all);
  if (!all && !form.has(ir::Modifier::wait_group)) return false;
  const int64_t but = all ? -1 : decoder.operands()[decoder.top_level(0)].immediate;
  decoder.emit(bulk ? &wait_for_groups<CopyKind::bulk> : &wait_for_groups<CopyKind::plain>).immediate = but;
  return true;
}

void decode_cp(Decoder& decoder, ir::InstructionId) {
  if (decode_groups(decoder)) return;
  if (decoder.form().has(ir::Modifier::bulk)) return decode_bulk_copy(decoder);
  decode_copy(decoder);
}

void decode_bulk_store(Decoder& decoder, ir::InstructionId) {
  const AddressSource address = address_source(decoder, 0);
  const LaneRef bytes = decoder.source(decoder.operands()[decoder.top_level(1)], lanes_of_bits(64));
  MicroOp& op = decoder.emit(&store_zeros);
  op.flags = static_cast<uint32_t>(decode_space(decoder.form().space)) | (address.narrow ? flag_narrow_first : 0);
  op.source[0] = address.base;
  op.source[1] = bytes;
  op.immediate = address.offset;
}

// A cache policy is a number that the emulator ignores.
void decode_policy(Decoder& decoder, ir::InstructionId) {
  const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(64));
  const LaneRef zero = decoder.constant(0, 64);
  MicroOp& op = decoder.emit(lane_handler<([](uint64_t value) { return value; })>);
  op.source[0] = zero;
  op.destination[0] = target;
}

} // namespace

bool is_in_same_block(Warp& warp, const MicroOp& op, unsigned lane, const CopyTarget& target) {
  const uint64_t to = target.to >> shared_rank_shift, barrier = target.barrier >> shared_rank_shift;
  if (!warp.block->cluster || to == barrier || (target.of_pair && (to ^ barrier) == 1)) return true;
  warp.block->fail(warp, op, lane,
                   fmt::format("bytes for block {} of the cluster, counted at an mbarrier in block {}", to, barrier));
  return false;
}

std::string complete_late_copies(Block& block, std::byte* barrier) {
  std::string wrong;
  const auto complete_of = [&](Block& other) {
    if (std::string found = other.late_copies->complete(barrier); wrong.empty()) wrong = std::move(found);
    if (!other.tensor_unit) return;
    if (std::string found = other.tensor_unit->complete(barrier); wrong.empty()) wrong = std::move(found);
  };
  if (!block.cluster) {
    complete_of(block);
  } else {
    for (Block* other : block.cluster->blocks)
      complete_of(*other);
  }
  return wrong;
}

void add_async_operations(OperationTable& table) {
  table.special("cp*", &decode_cp);
  table.special("st.bulk*", &decode_bulk_store);
  table.special("createpolicy*", &decode_policy);
}

} // namespace ptxrewrite::emulator
