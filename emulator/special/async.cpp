// cp.async, mbarrier and st.bulk (PTX ISA 9.7.9.25 and 9.7.13.15). A copy is carried out when it is issued,
// or when it is waited for (emulator/core/copies.h): a kernel that waits as it must sees no difference.
#include "emulator/core/check.h"
#include "emulator/core/copies.h"
#include "emulator/core/watch.h"
#include "emulator/memory/mbarrier_word.h"
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
constexpr uint32_t flag_ignore = 1u << 16; // op.source[2] is a predicate: read nothing
constexpr uint32_t flag_expect = 1u << 17; // arrive.expect_tx
constexpr uint32_t flag_drop = 1u << 18;
constexpr uint32_t flag_parity = 1u << 19;

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

// Only in blocks with late copies; op.immediate: how many groups may stay open, -1: not even the open one.
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

// --- mbarrier ---

// copies_arrive: the arrival of copies is one of those that the barrier expects; copies_join: it is expected besides.
enum class BarrierAction : uint8_t { init, invalidate, arrive, expect, complete, test, copies_arrive, copies_join };

// What is wrong with the barrier after the operation; empty: nothing.
std::string apply(BarrierAction action, const MicroOp& op, BarrierWord& barrier, uint64_t operand) {
  const auto count = static_cast<int64_t>(operand & 0xffffffff);
  switch (action) {
  case BarrierAction::init:
    if (count < 1 || count > largest_barrier_count) return fmt::format("mbarrier of {} arrivals", count);
    barrier = {count, count, 0, 0, true};
    return {};
  case BarrierAction::arrive: {
    const int64_t arrivals = op.flags & flag_expect || !op.source[1] ? 1 : count;
    if (op.flags & flag_expect)
      if (std::string wrong = expect_bytes(barrier, count); !wrong.empty()) return wrong;
    if (op.flags & flag_drop) barrier.expected -= arrivals;
    return arrive_at_barrier(barrier, arrivals);
  }
  case BarrierAction::copies_arrive:
    return arrive_at_barrier(barrier, 1);
  case BarrierAction::copies_join:
    ++barrier.pending;
    return {};
  case BarrierAction::expect:
    return expect_bytes(barrier, count);
  case BarrierAction::complete:
    return complete_bytes(barrier, count);
  default:
    return {};
  }
}

// Copies of the thread arrive at the barrier when they are done: at once, or late.
template <BarrierAction action>
std::string apply_to_copies(Block& block, const MicroOp& op, std::byte* host, BarrierWord& barrier, uint32_t thread) {
  if (!block.late_copies) return action == BarrierAction::copies_arrive ? apply(action, op, barrier, 0) : std::string();
  if (action == BarrierAction::copies_join) (void)apply(action, op, barrier, 0);
  block.late_copies->arrive_when_done(thread, host);
  return {};
}

// op.source: address, operand.
template <BarrierAction action> const MicroOp* barrier_operation(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  const auto space = static_cast<Space>(op.flags & 0xff);
  uint64_t addresses[warp_size];
  all_addresses(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, addresses);
  // Arrivals release and waits acquire what the warp has written: as fences do.
  if (block.checker && action != BarrierAction::test) block.checker->fence(warp);
  constexpr bool writes_only = action == BarrierAction::init || action == BarrierAction::invalidate;
  if (block.watch_memory &&
      !watch_access(warp, op, space, addresses, 8, writes_only ? AccessKind::store : AccessKind::atomic))
    return nullptr;
  if (block.checker && action == BarrierAction::test) block.checker->fence(warp);
  return for_each_lane(warp, op, [&](unsigned lane) {
    std::byte* host = lane_bytes(warp, op, lane, space, addresses[lane], 8, 8, "mbarrier operation");
    if (!host) return false;
    uint64_t operand = 0;
    if (op.source[1])
      operand = op.count == 8 ? warp.lanes<uint64_t>(op.source[1])[lane] : warp.lanes<uint32_t>(op.source[1])[lane];
    uint64_t word = 0;
    std::memcpy(&word, host, sizeof word);
    const uint64_t tested = op.flags & flag_parity ? operand & 1 : unpack_barrier(operand).parity;
    // A phase that is over waits for no copy: not even for those of the next one.
    if constexpr (action == BarrierAction::test)
      if (block.late_copies && tested == unpack_barrier(word).parity) {
        if (std::string wrong = complete_late_copies(block, host); !wrong.empty()) {
          block.fail(warp, op, lane, std::move(wrong));
          return false;
        }
        std::memcpy(&word, host, sizeof word);
      }
    BarrierWord barrier = unpack_barrier(word);
    if (action != BarrierAction::init && !barrier.valid) {
      block.fail(warp, op, lane, fmt::format("mbarrier at {:#x}, which is not initialised", addresses[lane]));
      return false;
    }
    if constexpr (action == BarrierAction::test) {
      uint32_t& result = warp.predicate(op.destination[0]);
      const uint32_t bit = 1u << lane;
      result = tested != barrier.parity ? result | bit : result & ~bit;
      return true;
    }
    if ((action == BarrierAction::copies_arrive || action == BarrierAction::copies_join) &&
        !has_room_for_copy(warp, op, lane))
      return false;
    std::string wrong;
    if constexpr (action == BarrierAction::copies_arrive || action == BarrierAction::copies_join)
      wrong = apply_to_copies<action>(block, op, host, barrier, warp.index * warp_size + lane);
    else
      wrong = apply(action, op, barrier, operand);
    if (!wrong.empty()) {
      block.fail(warp, op, lane, std::move(wrong));
      return false;
    }
    const uint64_t now = action == BarrierAction::invalidate ? 0 : pack_barrier(barrier);
    std::memcpy(host, &now, sizeof now);
    if (op.destination[0]) warp.lanes<uint64_t>(op.destination[0])[lane] = word;
    return true;
  });
}

const MicroOp* pending_count(Warp& warp, const MicroOp& op) {
  const uint64_t* states = warp.lanes<uint64_t>(op.source[0]);
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask,
                                [&](unsigned lane) { return static_cast<uint32_t>(states[lane] >> 20 & 0xfffff); });
  return &op + 1;
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

// The operand behind the address, if any, of 32 or 64 bits. `first`: the address's place among the operands.
void emit_barrier_operation(Decoder& decoder, Handler handler, unsigned first, unsigned operand_bits, uint32_t flags,
                            LaneRef target) {
  const AddressSource address = address_source(decoder, first);
  const size_t position = decoder.top_level(first + 1);
  LaneRef operand;
  if (operand_bits && position < decoder.operands().size())
    operand = decoder.source(decoder.operands()[position], lanes_of_bits(operand_bits));
  const Space space = decode_space(decoder.form().space);
  MicroOp& op = decoder.emit(handler);
  op.flags = flags | static_cast<uint32_t>(space) | (address.narrow ? flag_narrow_first : 0);
  op.count = static_cast<uint8_t>(operand_bits / 8);
  op.source[0] = address.base;
  op.source[1] = operand;
  op.destination[0] = target;
  op.immediate = address.offset;
}

// Commits and waits. False: the instruction is something else.
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
  const ir::Form& form = decoder.form();
  if (decode_groups(decoder)) return;
  if (form.has(ir::Modifier::bulk)) return decode_bulk_copy(decoder);
  if (form.has(ir::Modifier::mbarrier)) {
    // Without .noinc the arrival is added to those the barrier expects, and taken away again.
    const bool expected = form.has(ir::Modifier::noinc);
    return emit_barrier_operation(decoder,
                                  expected ? &barrier_operation<BarrierAction::copies_arrive>
                                           : &barrier_operation<BarrierAction::copies_join>,
                                  0, 0, 0, {});
  }
  decode_copy(decoder);
}

void decode_mbarrier(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  auto has = [&](ir::Modifier word) { return form.has(word); };
  if (has(ir::Modifier::layout_v1) || has(ir::Modifier::check_layout))
    return decoder.unsupported("mbarriers with reports are not emulated");
  if (has(ir::Modifier::phase_type_primary) || has(ir::Modifier::phase_type_conditional))
    return decoder.unsupported("phases of mbarriers with reports are not emulated");
  if (has(ir::Modifier::multicast_cluster_32b))
    return decoder.unsupported("mbarrier operations on several blocks of a cluster");
  if (has(ir::Modifier::init))
    return emit_barrier_operation(decoder, &barrier_operation<BarrierAction::init>, 0, 32, 0, {});
  if (has(ir::Modifier::inval))
    return emit_barrier_operation(decoder, &barrier_operation<BarrierAction::invalidate>, 0, 0, 0, {});
  if (has(ir::Modifier::arrive) || has(ir::Modifier::arrive_drop)) {
    const uint32_t flags =
        (has(ir::Modifier::expect_tx) ? flag_expect : 0) | (has(ir::Modifier::arrive_drop) ? flag_drop : 0);
    LaneRef target;
    if (!operands[0].is(ir::OperandKind::sink)) target = decoder.destination(operands[0], lanes_of_bits(64));
    return emit_barrier_operation(decoder, &barrier_operation<BarrierAction::arrive>, 1, 32, flags, target);
  }
  if (has(ir::Modifier::expect_tx))
    return emit_barrier_operation(decoder, &barrier_operation<BarrierAction::expect>, 0, 32, 0, {});
  if (has(ir::Modifier::complete_tx))
    return emit_barrier_operation(decoder, &barrier_operation<BarrierAction::complete>, 0, 32, 0, {});
  if (has(ir::Modifier::test_wait) || has(ir::Modifier::try_wait)) {
    const bool parity = has(ir::Modifier::parity);
    const LaneRef target = decoder.destination(operands[0], lanes_of_bits(1));
    return emit_barrier_operation(decoder, &barrier_operation<BarrierAction::test>, 1, parity ? 32 : 64,
                                  parity ? flag_parity : 0, target);
  }
  if (!has(ir::Modifier::pending_count)) return decoder.unsupported("an mbarrier operation that is not emulated");
  const LaneRef state = decoder.source(operands[decoder.top_level(1)], lanes_of_bits(64));
  const LaneRef target = decoder.destination(operands[0], lanes_of_bits(32));
  MicroOp& op = decoder.emit(&pending_count);
  op.source[0] = state;
  op.destination[0] = target;
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

// A cache policy is a number that nothing here looks at.
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
  table.special("mbarrier*", &decode_mbarrier);
  table.special("st.bulk*", &decode_bulk_store);
  table.special("createpolicy*", &decode_policy);
}

} // namespace ptxrewrite::emulator
