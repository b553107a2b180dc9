// mbarrier and cp.async.mbarrier.arrive (PTX ISA 9.7.13.15): arrivals, transactions, phases and, for barriers of layout
// v1, reports of asynchronous operations.
#include "emulator/core/check.h"
#include "emulator/core/copies.h"
#include "emulator/core/observer.h"
#include "emulator/core/watch.h"
#include "emulator/memory/mbarrier_word.h"
#include "emulator/special/async_access.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

// MicroOp::flags: a Space in the low byte, widths of addresses (async_access.h), and
constexpr uint32_t flag_layout_v1 = 1u << 16;
constexpr uint32_t flag_expect = 1u << 17; // arrive.expect_tx
constexpr uint32_t flag_drop = 1u << 18;
constexpr uint32_t flag_parity = 1u << 19;
constexpr uint32_t flag_conditional = 1u << 20; // the phase that ends only if nothing was reported
constexpr uint32_t flag_relaxed = 1u << 21;     // orders nothing but with fences

// copies_arrive: the copies' arrival is among those that the barrier expects; copies_join: it is expected in addition.
enum class BarrierAction : uint8_t { init, invalidate, arrive, expect, complete, copies_arrive, copies_join };

// Applies the operation and returns a message if the barrier is not valid afterwards, else an empty string.
std::string apply(BarrierAction action, const MicroOp& op, BarrierWord& barrier, uint64_t operand) {
  const auto count = static_cast<int64_t>(operand & 0xffffffff);
  switch (action) {
  case BarrierAction::init:
    barrier = {};
    barrier.reporting = op.flags & flag_layout_v1;
    if (count < 1 || count > barrier.largest_count()) return fmt::format("mbarrier of {} arrivals", count);
    barrier.expected = barrier.pending = count;
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
  case BarrierAction::invalidate:
    return {};
  }
  return {};
}

// Counts an arrival of the thread's copies once they are complete: immediately, or with late copies later.
template <BarrierAction action>
std::string apply_to_copies(Block& block, const MicroOp& op, std::byte* host, BarrierWord& barrier, uint32_t thread) {
  if (!block.late_copies) return action == BarrierAction::copies_arrive ? apply(action, op, barrier, 0) : std::string();
  if (action == BarrierAction::copies_join) (void)apply(action, op, barrier, 0);
  block.late_copies->arrive_when_done(thread, host);
  return {};
}

uint64_t lane_operand(const Warp& warp, const MicroOp& op, unsigned lane) {
  if (!op.source[1]) return 0;
  return op.count == 8 ? warp.lanes<uint64_t>(op.source[1])[lane] : warp.lanes<uint32_t>(op.source[1])[lane];
}

bool read_barrier(Warp& warp, const MicroOp& op, unsigned lane, uint64_t address, const std::byte* host,
                  BarrierWord& barrier) {
  uint64_t word;
  std::memcpy(&word, host, sizeof word);
  barrier = unpack_barrier(word);
  if (barrier.valid) return true;
  warp.block->fail(warp, op, lane, fmt::format("mbarrier at {:#x}, which is not initialised", address));
  return false;
}

// Applies the action to one barrier of a lane. Returns false if the block has failed.
template <BarrierAction action>
bool change_lane_barrier(Warp& warp, const MicroOp& op, unsigned lane, Space space, uint64_t address) {
  constexpr bool of_copies = action == BarrierAction::copies_arrive || action == BarrierAction::copies_join;
  Block& block = *warp.block;
  std::byte* host = lane_bytes(warp, op, lane, space, address, 8, 8, "mbarrier operation");
  if (!host) return false;
  BarrierWord barrier;
  if (action != BarrierAction::init && !read_barrier(warp, op, lane, address, host, barrier)) return false;
  if (of_copies && !has_room_for_copy(warp, op, lane)) return false;
  uint64_t before;
  std::memcpy(&before, host, sizeof before);
  std::string wrong;
  if constexpr (of_copies)
    wrong = apply_to_copies<action>(block, op, host, barrier, warp.index * warp_size + lane);
  else
    wrong = apply(action, op, barrier, lane_operand(warp, op, lane));
  if (!wrong.empty()) {
    block.fail(warp, op, lane, std::move(wrong));
    return false;
  }
  const uint64_t now = action == BarrierAction::invalidate ? 0 : pack_barrier(barrier);
  std::memcpy(host, &now, sizeof now);
  if (op.destination[0]) warp.lanes<uint64_t>(op.destination[0])[lane] = before;
  return true;
}

// op.source: address, operand.
template <BarrierAction action> const MicroOp* change_barriers(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  const auto space = static_cast<Space>(op.flags & 0xff);
  uint64_t addresses[warp_size];
  all_addresses(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, addresses);
  // An arrival releases the warp's writes, as a fence does.
  if (block.checker && !(op.flags & flag_relaxed)) block.checker->fence(warp);
  constexpr bool writes_only = action == BarrierAction::init || action == BarrierAction::invalidate;
  if (block.watch_memory &&
      !watch_access(warp, op, space, addresses, 8, writes_only ? AccessKind::store : AccessKind::atomic))
    return nullptr;
  return for_each_lane(
      warp, op, [&](unsigned lane) { return change_lane_barrier<action>(warp, op, lane, space, addresses[lane]); });
}

// .multicast::cluster::32b: the barriers at the same offset in the blocks of a mask, the operand at op.extra in the
// list (PTX ISA 9.4).
template <BarrierAction action> const MicroOp* change_cluster_barriers(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  const bool generic = static_cast<Space>(op.flags & 0xff) == Space::generic;
  if (block.checker && !(op.flags & flag_relaxed)) block.checker->fence(warp);
  return for_each_lane(warp, op, [&](unsigned lane) {
    uint64_t address = lane_address(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, lane);
    if (generic) {
      const SpaceAddress split = split_generic(address);
      if (split.space != Space::shared) {
        bad_access(warp, op, lane, Space::generic, address, 8, "mbarrier operation");
        return false;
      }
      address = split.address;
    }
    const uint32_t mask = warp.lanes<uint32_t>(warp.activation->function->lists[op.extra])[lane];
    return for_each_target(warp, op, lane, mask, {address, 0}, [&](const CopyTarget& there) {
      if (block.watch_memory) {
        uint64_t addresses[warp_size];
        std::fill_n(addresses, warp_size, there.to);
        const uint32_t all = std::exchange(warp.mask, 1u << lane);
        const bool good = watch_access(warp, op, Space::cluster, addresses, 8, AccessKind::atomic);
        warp.mask = all;
        if (!good) return false;
      }
      return change_lane_barrier<action>(warp, op, lane, Space::cluster, there.to);
    });
  });
}

void set_lane(Warp& warp, LaneRef predicate, unsigned lane, bool value) {
  if (!predicate) return;
  uint32_t& bits = warp.predicate(predicate);
  bits = value ? bits | 1u << lane : bits & ~(1u << lane);
}

// After a successful wait the other warps get a turn. Here copies and products complete when they are issued, so that
// one warp could run through many phases; parities distinguish only two, and warps of loops that rely on the hardware's
// latency (CUTLASS's Blackwell tutorials) would miss a phase.
const MicroOp* take_turns(Warp& warp, const MicroOp* next) {
  const Block& block = *warp.block;
  if (block.warps.size() == 1 || block.machine) return next;
  if (block.observer && (block.observer->wants_after() || block.observer->keeps_order())) return next;
  warp.splits.push_back({next, warp.activation, warp.active, warp.meeting, SplitState::runnable, 0});
  warp.active = 0;
  return nullptr;
}

// test_wait and try_wait. op.source: address, parity or state. op.destination: is the phase over, was there a report;
// the report's value goes to the list at op.extra (UINT32_MAX: not requested).
const MicroOp* test_barriers(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  const auto space = static_cast<Space>(op.flags & 0xff);
  uint64_t addresses[warp_size];
  all_addresses(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, addresses);
  if (block.watch_memory && !watch_access(warp, op, space, addresses, 8, AccessKind::load)) return nullptr;
  // A wait acquires the writes of other threads, as a fence does.
  if (block.checker && !(op.flags & flag_relaxed)) block.checker->fence(warp);
  bool any_over = false;
  const MicroOp* next = for_each_lane(warp, op, [&](unsigned lane) {
    std::byte* host = lane_bytes(warp, op, lane, space, addresses[lane], 8, 8, "mbarrier operation");
    BarrierWord barrier;
    if (!host || !read_barrier(warp, op, lane, addresses[lane], host, barrier)) return false;
    const uint64_t operand = lane_operand(warp, op, lane);
    const uint64_t tested = op.flags & flag_parity ? operand & 1 : unpack_barrier(operand).parity;
    const auto current = [&] {
      return op.flags & flag_conditional && barrier.reporting ? barrier.conditional_parity : barrier.parity;
    };
    // A test of a phase that is over completes no copies, not even those of the next phase.
    if (block.late_copies && tested == current()) {
      if (std::string wrong = complete_late_copies(block, host); !wrong.empty()) {
        block.fail(warp, op, lane, std::move(wrong));
        return false;
      }
      if (!read_barrier(warp, op, lane, addresses[lane], host, barrier)) return false;
    }
    const bool over = tested != current();
    any_over |= over;
    const BarrierReport report = over ? barrier.last_report : BarrierReport();
    set_lane(warp, op.destination[0], lane, over);
    set_lane(warp, op.destination[1], lane, report.any);
    if (op.extra != UINT32_MAX) {
      const LaneRef values = warp.activation->function->lists[op.extra];
      warp.lanes<uint8_t>(values)[lane] = report.value;
    }
    return true;
  });
  return next && any_over ? take_turns(warp, next) : next;
}

const MicroOp* check_layouts(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  const auto space = static_cast<Space>(op.flags & 0xff);
  uint64_t addresses[warp_size];
  all_addresses(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, addresses);
  if (block.watch_memory && !watch_access(warp, op, space, addresses, 8, AccessKind::load)) return nullptr;
  return for_each_lane(warp, op, [&](unsigned lane) {
    const std::byte* host = lane_bytes(warp, op, lane, space, addresses[lane], 8, 8, "mbarrier operation");
    BarrierWord barrier;
    if (!host || !read_barrier(warp, op, lane, addresses[lane], host, barrier)) return false;
    set_lane(warp, op.destination[0], lane, barrier.reporting == ((op.flags & flag_layout_v1) != 0));
    return true;
  });
}

const MicroOp* pending_count(Warp& warp, const MicroOp& op) {
  const uint64_t* states = warp.lanes<uint64_t>(op.source[0]);
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned lane) {
    return static_cast<uint32_t>(unpack_barrier(states[lane]).pending);
  });
  return &op + 1;
}

// --- decoding ---

// Operands of an instruction on a barrier.
struct BarrierOperands {
  unsigned address = 0;      // top-level operand
  unsigned operand_bits = 0; // width of the operand after the address, if there is one; 0: it is ignored
  uint32_t flags = 0;
  LaneRef target, second_target;
  uint32_t extra = UINT32_MAX;
};

void emit_barrier_operation(Decoder& decoder, Handler handler, const BarrierOperands& names) {
  const AddressSource address = address_source(decoder, names.address);
  const size_t position = decoder.top_level(names.address + 1);
  LaneRef operand;
  if (names.operand_bits && position < decoder.operands().size())
    operand = decoder.source(decoder.operands()[position], lanes_of_bits(names.operand_bits));
  const Space space = decode_space(decoder.form().space);
  MicroOp& op = decoder.emit(handler);
  op.flags = names.flags | static_cast<uint32_t>(space) | (address.narrow ? flag_narrow_first : 0) |
             (decoder.form().has(ir::Modifier::relaxed) ? flag_relaxed : 0);
  op.count = static_cast<uint8_t>(names.operand_bits / 8);
  op.source[0] = address.base;
  op.source[1] = operand;
  op.destination[0] = names.target;
  op.destination[1] = names.second_target;
  op.immediate = address.offset;
  op.extra = names.extra;
}

// Without .noinc, the arrival is added to the expected count and then taken off again.
void decode_copies_arrival(Decoder& decoder, ir::InstructionId) {
  const bool expected = decoder.form().has(ir::Modifier::noinc);
  emit_barrier_operation(
      decoder, expected ? &change_barriers<BarrierAction::copies_arrive> : &change_barriers<BarrierAction::copies_join>,
      {});
}

// Operands: `_` or the state, an address, optionally a count, and with .multicast::cluster::32b the mask.
template <BarrierAction action> void decode_change(Decoder& decoder, BarrierOperands names) {
  if (!decoder.form().has(ir::Modifier::multicast_cluster_32b))
    return emit_barrier_operation(decoder, &change_barriers<action>, names);
  const unsigned last = decoder.top_level_count() - 1;
  if (last == names.address + 1) names.operand_bits = 0; // without a count
  const LaneRef mask = decoder.source(decoder.operands()[decoder.top_level(last)], lanes_of_bits(32));
  names.extra = decoder.add_list(std::array{mask});
  emit_barrier_operation(decoder, &change_cluster_barriers<action>, names);
}

void decode_arrival(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  BarrierOperands names{1, 32};
  names.flags =
      (form.has(ir::Modifier::expect_tx) ? flag_expect : 0) | (form.has(ir::Modifier::arrive_drop) ? flag_drop : 0);
  if (!decoder.operands()[0].is(ir::OperandKind::sink))
    names.target = decoder.destination(decoder.operands()[0], lanes_of_bits(64));
  decode_change<BarrierAction::arrive>(decoder, names);
}

// Operands: `p`, `p|report` and the report's value, then the address.
void decode_test(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  const bool parity = form.has(ir::Modifier::parity);
  BarrierOperands names{1, parity ? 32u : 64u};
  names.flags = (parity ? flag_parity : 0) | (form.has(ir::Modifier::phase_type_conditional) ? flag_conditional : 0);
  const bool is_pair = operands[0].is(ir::OperandKind::pair);
  names.target = decoder.destination(operands[is_pair ? 1 : 0], lanes_of_bits(1));
  if (is_pair && !operands[2].is(ir::OperandKind::sink))
    names.second_target = decoder.destination(operands[2], lanes_of_bits(1));
  const ir::Operand& second = operands[decoder.top_level(1)];
  if (!second.is(ir::OperandKind::address)) {
    names.address = 2;
    names.extra = decoder.add_list(std::array{decoder.destination(second, lanes_of_bits(8))});
  }
  emit_barrier_operation(decoder, &test_barriers, names);
}

void decode_mbarrier(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  auto has = [&](ir::Modifier word) { return form.has(word); };
  const uint32_t layout = has(ir::Modifier::layout_v1) ? flag_layout_v1 : 0;
  if (has(ir::Modifier::init))
    return emit_barrier_operation(decoder, &change_barriers<BarrierAction::init>, {0, 32, layout});
  if (has(ir::Modifier::inval))
    return emit_barrier_operation(decoder, &change_barriers<BarrierAction::invalidate>, {0, 0});
  if (has(ir::Modifier::check_layout)) {
    BarrierOperands names{1, 0, layout};
    names.target = decoder.destination(operands[0], lanes_of_bits(1));
    return emit_barrier_operation(decoder, &check_layouts, names);
  }
  if (has(ir::Modifier::arrive) || has(ir::Modifier::arrive_drop)) return decode_arrival(decoder);
  if (has(ir::Modifier::expect_tx)) return decode_change<BarrierAction::expect>(decoder, {0, 32});
  if (has(ir::Modifier::complete_tx)) return decode_change<BarrierAction::complete>(decoder, {0, 32});
  if (has(ir::Modifier::test_wait) || has(ir::Modifier::try_wait)) return decode_test(decoder);
  if (!has(ir::Modifier::pending_count)) return decoder.unsupported("an mbarrier operation that is not emulated");
  const LaneRef state = decoder.source(operands[decoder.top_level(1)], lanes_of_bits(64));
  const LaneRef target = decoder.destination(operands[0], lanes_of_bits(32));
  MicroOp& op = decoder.emit(&pending_count);
  op.source[0] = state;
  op.destination[0] = target;
}

} // namespace

void add_mbarrier_operations(OperationTable& table) {
  table.special("cp.async.mbarrier*", &decode_copies_arrival);
  table.special("mbarrier*", &decode_mbarrier);
}

} // namespace ptxrewrite::emulator
