// Check mode: the order between accesses.
#include "emulator/check/block_checker.h"

#include "emulator/core/decode.h"
#include "emulator/core/function_end.h"
#include "ir/core/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace ptxrewrite::emulator {

// --- order ---

// Reserves memory for one more address in given_. Returns false if the limit is reached.
bool BlockChecker::has_room_for_places() {
  if (given_.size() < most_given_) return true;
  if (!share_.try_grow(places_at_a_time * place_bytes())) return false;
  most_given_ += places_at_a_time;
  return true;
}

// A strong access releases the warp's fenced clock at its address, and acquires the clocks released there.
void BlockChecker::synchronise(Warp& warp, GivenClocks& given, uint64_t place, bool global, const Strength& strength,
                               AccessKind kind) {
  const unsigned self = warp.index;
  if (kind != AccessKind::store)
    if (auto there = given.find(place); there != given.end())
      join(strength.acquires ? clocks_[self] : pending_[self], there->second);
  // Releases by other blocks count without a fence: a reader's missing fence is not reported for global memory.
  if (global && kind != AccessKind::store) clocks_[self].others = std::max(clocks_[self].others, global_.given(place));
  if (kind == AccessKind::load) return;
  if (strength.releases) clocks_[self].fenced = global_.pass_moment();
  if (global && clocks_[self].fenced) global_.give(place, clocks_[self].fenced);
  if (strength.releases) {
    join(given[place], clocks_[self]);
    ++known(clocks_[self], self);
    return;
  }
  if (has_fenced_[self]) join(given[place], fenced_[self]);
  if (!tensor_fenced_[self].known.empty()) join(given[place], tensor_fenced_[self]);
}

void BlockChecker::fence(Warp& warp) {
  const unsigned self = warp.index;
  join(clocks_[self], pending_[self]);
  clocks_[self].fenced = global_.pass_moment();
  fenced_[self] = clocks_[self];
  has_fenced_[self] = true;
  ++known(clocks_[self], self);
}

void BlockChecker::tensor_fence(Warp& warp, bool before) {
  const unsigned self = warp.index;
  const size_t agents = size_t(ranks()) * maximum_agents, tensor = tensor_place(0, 0);
  const std::vector<uint32_t>& from = before ? clocks_[self].known : pending_[self].known;
  std::vector<uint32_t>& to = before ? tensor_fenced_[self].known : clocks_[self].known;
  if (from.empty()) return;
  to.resize(numbers_of_clock(ranks()));
  for (size_t i = 0; i < agents; ++i)
    to[tensor + i] = std::max({to[tensor + i], from[i], from[tensor + i]});
  if (before) ++known(clocks_[self], self);
}

void BlockChecker::release(Warp& warp, Space space, uint64_t address) {
  if (space == Space::generic) {
    space = Space::cluster;
    address = split_generic(address).address;
  }
  const SharedPlace place = shared_place(space, address);
  if (!place.owner) return;
  join(place.owner->given_[shared_window + place.offset], clocks_[warp.index]);
  ++known(clocks_[warp.index], warp.index);
}

void BlockChecker::allocated(uint64_t address, uint64_t bytes) {
  global_.forget(address, bytes);
}

void BlockChecker::warp_arrived(Warp& warp, unsigned number) {
  join(clocks_[warp.index], pending_[warp.index]);
  join(barrier_clocks_[number], clocks_[warp.index]);
  fenced_[warp.index] = clocks_[warp.index];
  ++known(clocks_[warp.index], warp.index);
}

void BlockChecker::barrier_completed(Block& block, unsigned number, uint32_t waiting_warps, bool of_all) {
  // Warps that have ended count as arrived.
  for (const Warp& warp : block.warps)
    if (of_all && warp.state == WarpState::finished) join(barrier_clocks_[number], clocks_[warp.index]);
  for (; waiting_warps; waiting_warps &= waiting_warps - 1)
    join(clocks_[static_cast<unsigned>(std::countr_zero(waiting_warps))], barrier_clocks_[number]);
  barrier_clocks_[number] = {};
  barrier_uses_[number] = {};
}

// --- barrier.cluster ---

void BlockChecker::cluster_arrived(Warp& warp, bool relaxed) {
  join(clocks_[warp.index], pending_[warp.index]);
  join(home().cluster_arriving_.reached, clocks_[warp.index]);
  if (relaxed) {
    join(home().cluster_arriving_.released, tensor_fenced_[warp.index]);
  } else {
    join(home().cluster_arriving_.released, clocks_[warp.index]);
    fenced_[warp.index] = clocks_[warp.index];
  }
  ++known(clocks_[warp.index], warp.index);
}

void BlockChecker::cluster_barrier_completed() {
  ClusterPhase& arriving = home().cluster_arriving_;
  // As at barriers of a block: warps that have ended count as arrived.
  const auto join_ended = [&](const BlockChecker& checker) {
    for (const Warp& warp : checker.block_->warps)
      if (warp.state == WarpState::finished) join(arriving.released, checker.clocks_[warp.index]);
  };
  if (!block_->cluster) join_ended(*this);
  for (uint32_t rank = 0; rank < ranks() && block_->cluster; ++rank)
    join_ended(of_rank(rank));
  home().cluster_passed_ = std::move(arriving);
  arriving = {};
}

void BlockChecker::cluster_waited(Warp& warp) {
  join(clocks_[warp.index], home().cluster_passed_.released);
  join(reached_, home().cluster_passed_.reached);
}

// Other blocks must not access the shared memory of a block that has ended: each of their accesses must happen before
// an event that the block waits for.
void BlockChecker::block_ended() {
  if (!block_->cluster) return;
  Clock end = reached_;
  for (const Warp& warp : block_->warps)
    join(end, clocks_[warp.index]);
  for (const ShadowAccess& access : last_remote_) {
    if (access.clock <= end.known[access.rank * maximum_agents + access.warp]) continue;
    ++serial_;
    MicroOp op;
    op.instruction = access.instruction;
    Found* found = nullptr;
    if (!is_new(op, FindingKind::race, found)) continue;
    describe(*found, {access.instruction, access.warp, access.lane, std::nullopt, access.rank},
             fmt::format("race: shared memory of block {} of the cluster is accessed with nothing that keeps the block "
                         "from ending before (barrier.cluster)",
                         rank_),
             std::nullopt);
  }
}

// --- barriers ---

// Whether lanes that meet at `at` end there at once. Such lanes count as ended.
static bool ends_threads(const Meeting& meeting) {
  if (meeting.activation->caller) return false;
  const MicroOp* op = meeting.at;
  while (is_region_entry(*op))
    ++op;
  if (is_end_of_function(*op)) return true;
  if (!op->is_instruction || op->guard) return false;
  const DecodedFunction& function = *meeting.activation->function;
  const ir::Opcode opcode =
      function.source->form_of(ir::InstructionId(op->instruction - function.first_instruction)).opcode;
  return opcode == ir::Opcode::ret || opcode == ir::Opcode::exit;
}

void BlockChecker::barrier_executed(Warp& warp, const MicroOp& op, unsigned number, uint32_t expected_warps,
                                    bool aligned) {
  ++serial_;
  const Place here{op.instruction, warp.index, static_cast<unsigned>(std::countr_zero(warp.mask))};
  Found* found = nullptr;
  if (aligned) {
    uint32_t elsewhere = warp.active & ~warp.mask;
    for (uint32_t i = warp.meeting; i != no_meeting; i = warp.meetings[i].parent)
      if (!ends_threads(warp.meetings[i])) elsewhere |= warp.meetings[i].arrived;
    elsewhere &= warp.live;
    if (elsewhere && is_new(op, FindingKind::divergent_barrier, found))
      describe(*found, here,
               fmt::format("lanes {:#010x} of the warp do not execute this barrier, which all lanes of a warp must",
                           elsewhere),
               std::nullopt);
  }
  const uint32_t needed = expected_warps ? expected_warps : block_->launch->warps;
  BarrierUse& use = barrier_uses_[number];
  if (!use.in_phase)
    use = {true, needed, here};
  else if (use.needed != needed && is_new(op, FindingKind::barrier_count, found))
    describe(*found, here,
             fmt::format("barrier {} takes {} threads here, but {} threads for a warp that is there already", number,
                         needed * warp_size, use.needed * warp_size),
             use.first);
}

void BlockChecker::lanes_gathered(Warp& warp) {
  const Split& first = warp.splits.front();
  for (const Split& split : warp.splits) {
    if (split.next == first.next || (split.next[-1].flags & barrier_aligned) == 0) continue;
    ++serial_;
    const MicroOp& op = split.next[-1];
    Found* found = nullptr;
    if (is_new(op, FindingKind::divergent_barrier, found))
      describe(*found, {op.instruction, warp.index, static_cast<unsigned>(std::countr_zero(split.mask))},
               fmt::format("lanes {:#010x} of the warp wait at another barrier instruction; all lanes of a warp must "
                           "execute the same one",
                           first.mask),
               Place{first.next[-1].instruction, warp.index, static_cast<unsigned>(std::countr_zero(first.mask))});
    return;
  }
}

} // namespace ptxrewrite::emulator
