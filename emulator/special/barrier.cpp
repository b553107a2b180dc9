// bar, barrier: arrive at barriers and wait for the other warps of the block (PTX ISA 9.7.13.1).
#include "emulator/core/block.h"
#include "emulator/core/check.h"
#include "emulator/core/decode.h"
#include "emulator/core/lanes.h"
#include "emulator/core/machine.h"
#include "emulator/special/known_handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

enum class Reduction : uint8_t { none, popc, all, any };

// op.source: [0] barrier number, [1] number of threads or invalid, [2] predicate of .red.
struct Arrival {
  uint32_t number = 0;
  uint32_t expected_warps = 0; // 0: all warps of the block
};

// A parked warp stores the number of warps above the eight bits of the barrier's number. No block has that many warps,
// so a barrier that expects more never opens anyway.
constexpr uint32_t most_expected_warps = (1u << 24) - 1;

// Reads the operands, which must be the same in all lanes.
const MicroOp* read_operands(Warp& warp, const MicroOp& op, Arrival& arrival) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  arrival.number = warp.lanes<uint32_t>(op.source[0])[lane];
  if (arrival.number >= 16) return warp.block->fail(warp, op, lane, fmt::format("barrier {} of 16", arrival.number));
  if (op.source[1]) {
    const uint32_t threads = warp.lanes<uint32_t>(op.source[1])[lane];
    if (threads == 0 || threads % warp_size != 0)
      return warp.block->fail(warp, op, lane,
                              fmt::format("barrier of {} threads, which is no multiple of 32", threads));
    arrival.expected_warps = std::min(threads / warp_size, most_expected_warps);
  }
  return &op;
}

void note_execution(Warp& warp, const MicroOp& op, const Arrival& arrival) {
  if (warp.block->checker)
    warp.block->checker->barrier_executed(warp, op, arrival.number, arrival.expected_warps,
                                          (op.flags & barrier_aligned) != 0);
}

// The lanes wait here; Block::run counts the warp as arrived once all its live lanes wait. Lanes whose guard is false
// wait, too: a barrier counts warps, and a divergent .aligned one is undefined anyway.
const MicroOp* barrier_sync(Warp& warp, const MicroOp& op) {
  Arrival arrival;
  if (!read_operands(warp, op, arrival)) return nullptr;
  note_execution(warp, op, arrival);
  const bool is_plain = !op.source[1].valid() && !op.source[2].valid();
  if (is_plain && warp.active == warp.live && warp.splits.empty() &&
      warp.block->waits_whole(warp, arrival.number, &op + 1))
    return nullptr;
  if (op.source[2].valid()) {
    Barrier& barrier = warp.block->barriers[arrival.number];
    const uint32_t lanes = warp.predicate(op.source[2]) & warp.mask;
    barrier.true_count += static_cast<unsigned>(std::popcount(lanes));
    barrier.all_true = barrier.all_true && lanes == warp.mask;
  }
  return warp.park(&op + 1, SplitState::at_barrier, arrival.number | arrival.expected_warps << 8);
}

// An aligned arrival is one of the warp: lanes that have diverged, as by spinning at an mbarrier, gather for it.
const MicroOp* barrier_arrive(Warp& warp, const MicroOp& op) {
  Arrival arrival;
  if (!read_operands(warp, op, arrival)) return nullptr;
  if (op.flags & barrier_aligned) {
    uint32_t together = 0;
    const MicroOp* next = nullptr;
    if (!warp.gather(op, full_mask, together, next)) return next;
  }
  note_execution(warp, op, arrival);
  warp.block->warp_arrives(warp, arrival.number, arrival.expected_warps);
  if (warp.block->machine) warp.block->machine->barrier_arrived(warp);
  return &op + 1;
}

// Follows barrier.red: writes the result of the phase that has just ended.
template <Reduction reduction> const MicroOp* barrier_result(Warp& warp, const MicroOp& op) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  const Barrier& barrier = warp.block->barriers[warp.lanes<uint32_t>(op.source[0])[lane] % 16];
  if constexpr (reduction == Reduction::popc)
    detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned) { return barrier.result_count; });
  else
    detail::write_lanes<bool>(warp, op.destination[0], warp.mask, [&](unsigned) {
      return reduction == Reduction::all ? barrier.result_all : barrier.result_count > 0;
    });
  return &op + 1;
}

void decode_barrier(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  if (form.has(ir::Modifier::cluster)) return decoder.unsupported("barriers of clusters are not emulated");
  const Reduction reduction = !form.has(ir::Modifier::red)   ? Reduction::none
                              : form.has(ir::Modifier::popc) ? Reduction::popc
                              : form.has(ir::Modifier::and_) ? Reduction::all
                                                             : Reduction::any;
  unsigned next = reduction == Reduction::none ? 0 : 1;
  const unsigned count = decoder.top_level_count();
  const LaneRef number = decoder.source(operands[decoder.top_level(next++)], lanes_of_bits(32));
  LaneRef threads, predicate;
  const unsigned last = reduction == Reduction::none ? count : count - 1;
  if (next < last) threads = decoder.source(operands[decoder.top_level(next++)], lanes_of_bits(32));
  if (reduction != Reduction::none) predicate = decoder.source(operands[decoder.top_level(next)], lanes_of_bits(1));
  MicroOp& op = decoder.emit(form.has(ir::Modifier::arrive) ? &barrier_arrive : &barrier_sync);
  op.source[0] = number;
  op.source[1] = threads;
  op.source[2] = predicate;
  const bool is_aligned = form.opcode == ir::Opcode::bar || form.has(ir::Modifier::aligned);
  op.flags = is_aligned ? barrier_aligned : 0;
  if (!form.has(ir::Modifier::arrive)) decoder.end_region(false); // the warp resumes after it
  if (reduction == Reduction::none) return;
  const LaneRef target = decoder.destination(operands[0], lanes_of_bits(reduction == Reduction::popc ? 32 : 1));
  MicroOp& result = decoder.emit_further(reduction == Reduction::popc  ? &barrier_result<Reduction::popc>
                                         : reduction == Reduction::all ? &barrier_result<Reduction::all>
                                                                       : &barrier_result<Reduction::any>,
                                         true);
  result.source[0] = number;
  result.destination[0] = target;
}

} // namespace

bool is_plain_barrier(const MicroOp& op) {
  return op.handler == &barrier_sync && !op.guard && !op.source[1] && !op.source[2];
}

void add_barrier_operations(OperationTable& table) {
  // bar.warp is a warp function: special/warp_functions.cpp adds it before.
  table.special("bar*", &decode_barrier);
  table.special("barrier*", &decode_barrier);
}

} // namespace ptxrewrite::emulator
