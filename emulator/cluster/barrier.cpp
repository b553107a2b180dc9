// barrier.cluster (PTX ISA 9.7.13.4): threads of all blocks of a cluster arrive, and wait until all threads that have
// not ended have arrived. Arrive and wait are separate instructions, so that a thread can arrive for the next phase
// before others have waited for the last one.
#include "emulator/cluster/operations.h"
#include "emulator/core/block.h"
#include "emulator/core/check.h"
#include "emulator/core/decode.h"
#include "emulator/core/machine.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

// MicroOp::flags
constexpr uint32_t flag_relaxed = 1u << 1; // arrive.relaxed: orders nothing

const MicroOp* on_machine(Warp& warp, const MicroOp& op) {
  return warp.block->fail(warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)),
                          std::string(warp.block->machine->model().title()) + " has no barriers of clusters");
}

constexpr unsigned cluster_barrier = 16; // numbered after the barriers of a block

void note_execution(Warp& warp, const MicroOp& op) {
  if (warp.block->checker)
    warp.block->checker->barrier_executed(warp, op, cluster_barrier, 0, (op.flags & barrier_aligned) != 0);
}

const MicroOp* arrive(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  if (block.machine) return on_machine(warp, op);
  if (const uint32_t again = warp.mask & (warp.cluster_arrived | warp.cluster_passed))
    return block.fail(warp, op, static_cast<unsigned>(std::countr_zero(again)),
                      "barrier.cluster.arrive by a thread that has arrived and not waited since");
  note_execution(warp, op);
  if (block.checker) block.checker->cluster_arrived(warp, (op.flags & flag_relaxed) != 0);
  warp.cluster_arrived |= warp.mask;
  (void)block.complete_cluster_barrier();
  return &op + 1;
}

const MicroOp* wait(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  if (block.machine) return on_machine(warp, op);
  if (const uint32_t never = warp.mask & ~(warp.cluster_arrived | warp.cluster_passed))
    return block.fail(warp, op, static_cast<unsigned>(std::countr_zero(never)),
                      "barrier.cluster.wait by a thread that has not arrived");
  note_execution(warp, op);
  if (warp.mask & warp.cluster_arrived) return warp.park(&op + 1, SplitState::at_cluster_barrier, warp.mask);
  warp.cluster_passed &= ~warp.mask;
  if (block.checker) block.checker->cluster_waited(warp);
  return &op + 1;
}

void decode_cluster_barrier(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  MicroOp& op = decoder.emit(form.has(ir::Modifier::arrive) ? &arrive : &wait);
  op.flags =
      (form.has(ir::Modifier::aligned) ? barrier_aligned : 0) | (form.has(ir::Modifier::relaxed) ? flag_relaxed : 0);
}

template <class Visit> void for_each_block(Block& block, Visit&& visit) {
  if (!block.cluster) return (void)visit(block);
  for (size_t rank = 0; rank < block.cluster->blocks.size(); ++rank)
    if (!block.cluster->has_exited[rank]) visit(*block.cluster->blocks[rank]);
}

} // namespace

bool Block::waits_at_cluster_barrier() const {
  return std::any_of(warps.begin(), warps.end(), [](const Warp& warp) {
    return std::any_of(warp.splits.begin(), warp.splits.end(),
                       [](const Split& split) { return split.state == SplitState::at_cluster_barrier; });
  });
}

// `anybody`: set if a live thread has arrived.
bool Block::has_arrived_at_cluster_barrier(bool& anybody) const {
  if (live_warps == 0) return true;
  if (next_to_start_ < warps.size()) return false;
  for (const Warp& warp : warps) {
    if (warp.live & ~warp.cluster_arrived) return false;
    anybody = anybody || (warp.live & warp.cluster_arrived) != 0;
  }
  return true;
}

void Block::release_from_cluster_barrier() {
  for (Warp& warp : warps) {
    warp.cluster_passed |= warp.cluster_arrived;
    warp.cluster_arrived = 0;
    for (Split& split : warp.splits) {
      if (split.state != SplitState::at_cluster_barrier) continue;
      split.state = SplitState::runnable;
      warp.cluster_passed &= ~split.wait;
      if (checker) checker->cluster_waited(warp);
      if (warp.state == WarpState::waiting) warp.state = WarpState::runnable;
    }
  }
}

bool Block::complete_cluster_barrier() {
  bool all = true, anybody = false;
  for_each_block(*this, [&](const Block& block) { all = all && block.has_arrived_at_cluster_barrier(anybody); });
  if (!all || !anybody) return false;
  if (checker) checker->cluster_barrier_completed();
  for_each_block(*this, [](Block& block) { block.release_from_cluster_barrier(); });
  return true;
}

void add_cluster_barrier_operations(OperationTable& table) {
  table.special("barrier.cluster*", &decode_cluster_barrier);
}

} // namespace ptxrewrite::emulator
