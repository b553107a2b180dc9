// Check mode: accesses to global and local memory.
#include "emulator/check/block_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {

// --- global memory ---

bool BlockChecker::ordered(const GlobalAccess& before, unsigned warp) const {
  if (before.clock == 0 || before.moment <= clocks_[warp].others) return true;
  if (before.block == static_cast<uint32_t>(block_->linear)) return before.clock <= known(clocks_[warp], before.warp);
  for (uint32_t rank = 0; rank < ranks() && block_->cluster; ++rank)
    if (before.block == static_cast<uint32_t>(block_->cluster->blocks[rank]->linear))
      return before.clock <= clocks_[warp].known[rank * maximum_agents + before.warp];
  return false;
}

GlobalAccess BlockChecker::global_access(const LaneAccesses& access, const Warp& warp, unsigned lane) const {
  // A strong write belongs to the moment that it publishes: a thread that acquires it may write the address weakly.
  const uint32_t fenced = clocks_[warp.index].fenced;
  return {.clock = known(clocks_[warp.index], warp.index),
          .instruction = access.op->instruction,
          .block = static_cast<uint32_t>(block_->linear),
          .moment = access.strength.strong && fenced ? fenced : global_.moment(),
          .warp = static_cast<uint8_t>(warp.index),
          .lane = static_cast<uint8_t>(lane),
          .strong = access.strength.strong};
}

// A read racing with a strong write is not reported: flags and counters are polled with plain reads.
void BlockChecker::load_global(Warp& warp, const LaneAccesses& access) {
  uint64_t previous = UINT64_MAX;
  for (uint32_t lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint64_t start = access.addresses[lane];
    if (start == previous) continue;
    previous = start;
    const GlobalAccess read = global_access(access, warp, lane);
    global_.for_each(start, access.bytes, [&](GlobalCell& cell, uint64_t address, unsigned) {
      if (!cell.write.strong && !ordered(cell.write, warp.index))
        report_race(access, read, address, cell.write, access.is_atomic ? "changed" : "read", "written");
      if (!access.is_atomic) record_read(cell, read);
    });
  }
}

void BlockChecker::record_read(GlobalCell& cell, const GlobalAccess& read) const {
  const GlobalAccess& last = cell.read;
  const bool same_warp = last.block == read.block && last.warp == read.warp;
  if (same_warp && last.clock == read.clock) return;
  if (!same_warp && !ordered(last, read.warp) && (last.block != read.block || cell.other_read.block == read.block))
    cell.other_read = last;
  cell.read = read;
}

// A store that does not change the bytes races with nothing.
void BlockChecker::store_global(Warp& warp, const LaneAccesses& access) {
  if (!access.strength.strong) find_lane_conflict(warp, access);
  for (uint32_t lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint64_t start = access.addresses[lane];
    const std::byte* there = resolve(*block_, warp, lane, Space::global, start, access.bytes);
    const GlobalAccess write = global_access(access, warp, lane);
    global_.for_each(start, access.bytes, [&](GlobalCell& cell, uint64_t address, unsigned bytes) {
      bool changes = access.strength.strong || access.values.empty();
      for (uint64_t byte = address - start; byte < address - start + bytes && !changes; ++byte)
        changes = stored_byte(warp, access.values, access.bytes, lane, byte) != there[byte];
      if (!changes) return;
      const char* what = access.is_atomic ? "changed" : "written";
      if (!(cell.write.strong && write.strong) && !ordered(cell.write, warp.index))
        report_race(access, write, address, cell.write, what, "written");
      for (const GlobalAccess& read : {cell.read, cell.other_read})
        if (!write.strong && !ordered(read, warp.index)) report_race(access, write, address, read, what, "read");
      cell.write = write;
      cell.read = cell.other_read = {};
    });
  }
}

// Reports lanes that write different values to one address in one instruction: the winner is undefined.
void BlockChecker::find_lane_conflict(Warp& warp, const LaneAccesses& access) {
  if (access.values.empty()) return;
  uint32_t before = 0;
  uint64_t past = 0;
  for (uint32_t lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint64_t start = access.addresses[lane];
    const bool is_behind_all = start >= past;
    for (uint32_t others = is_behind_all ? 0 : before; others; others &= others - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(others));
      const uint64_t other_start = access.addresses[other];
      const uint64_t both_past = std::min(start, other_start) + access.bytes;
      for (uint64_t byte = std::max(start, other_start); byte < both_past; ++byte) {
        if (stored_byte(warp, access.values, access.bytes, lane, byte - start) ==
            stored_byte(warp, access.values, access.bytes, other, byte - other_start))
          continue;
        Found* found = nullptr;
        if (is_new(*access.op, FindingKind::lane_conflict, found))
          describe(*found, {access.op->instruction, warp.index, lane},
                   fmt::format("lanes {} and {} of the warp write different values to global {:#x} ({}) in the same "
                               "instruction",
                               other, lane, byte, block_->launch->memory->describe(byte)),
                   std::nullopt);
        return;
      }
    }
    before |= 1u << lane;
    past = std::max(past, start + access.bytes);
  }
}

void BlockChecker::check_local(Warp& warp, const MicroOp& op, unsigned lane, uint64_t address, uint64_t bytes,
                               AccessKind kind) {
  if (!contains(0, block_->local_stride, address, bytes)) return;
  const uint32_t thread = warp.index * warp_size + lane;
  if (kind != AccessKind::store)
    if (const unsigned missing = local_.missing(thread, address, bytes)) {
      Found* found = nullptr;
      if (is_new(op, FindingKind::uninitialised, found))
        describe(*found, {op.instruction, warp.index, lane},
                 fmt::format("{} of the {} bytes read at local {:#x} were never written by the thread", missing, bytes,
                             address),
                 std::nullopt);
    }
  if (kind != AccessKind::load) local_.mark(thread, address, bytes, true);
}

void BlockChecker::activation_started(Warp& warp, const Activation& activation) {
  const uint64_t bytes = activation.function->local_bytes;
  if (bytes == 0) return;
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1)
    local_.mark(warp.index * warp_size + static_cast<unsigned>(std::countr_zero(lanes)), activation.local_offset, bytes,
                false);
}

void BlockChecker::local_written(Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes) {
  for (; lanes; lanes &= lanes - 1)
    local_.mark(warp.index * warp_size + static_cast<unsigned>(std::countr_zero(lanes)), address, bytes, true);
}

} // namespace ptxrewrite::emulator
