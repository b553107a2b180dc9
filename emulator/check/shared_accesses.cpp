// Check mode: accesses to shared memory.
#include "emulator/check/block_checker.h"

#include "emulator/core/decode.h"
#include "ir/core/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

Strength strength_of(const ir::Form& form) {
  using ir::Modifier;
  Strength strength;
  strength.known = true;
  const bool is_barrier =
      form.opcode == ir::Opcode::mbarrier || form.has(Modifier::mbarrier); // cp.async.mbarrier.arrive
  // PTX ISA 9.7.13.15: arrivals release, and tests acquire, unless they are relaxed.
  const bool orders = is_barrier && !form.has(Modifier::relaxed);
  const bool tests = form.has(Modifier::test_wait) || form.has(Modifier::try_wait);
  strength.acquires = (orders && tests) || form.has(Modifier::acquire) || form.has(Modifier::acq_rel);
  strength.releases = (orders && !tests) || form.has(Modifier::release) || form.has(Modifier::acq_rel);
  strength.strong = is_barrier || strength.acquires || strength.releases || form.opcode == ir::Opcode::atom ||
                    form.opcode == ir::Opcode::red || form.has(Modifier::volatile_) || form.has(Modifier::relaxed) ||
                    form.has(Modifier::reduce); // bulk reductions: .relaxed.gpu for each element
  strength.by_async_proxy = form.opcode == ir::Opcode::cp && form.has(Modifier::bulk);
  return strength;
}

} // namespace

BlockChecker::BlockChecker(const LaunchState& launch)
    : global_(*launch.global_shadow), shared_(launch.shared_bytes), local_(launch.warps * warp_size),
      strengths_(launch.image->instruction_count), share_(launch.memory->budget()) {}

void BlockChecker::start_block(Block& block) {
  block_ = &block;
  rank_ = block.cluster ? block.cluster_rank : 0;
  shared_.clear();
  local_.clear();
  for (unsigned warp = 0; warp < maximum_warps; ++warp) {
    clocks_[warp] = fenced_[warp] = pending_[warp] = tensor_fenced_[warp] = {};
    clocks_[warp].known.resize(numbers_of_clock(ranks()));
    known(clocks_[warp], warp) = 1;
  }
  has_fenced_ = {};
  changed_tensor_maps_.clear();
  barrier_clocks_ = {};
  cluster_arriving_ = cluster_passed_ = {};
  reached_ = {};
  remote_reads_.clear();
  last_remote_.assign(block.cluster ? size_t(ranks()) * maximum_warps : 0, {});
  barrier_uses_ = {};
  given_.clear();
  serial_ = 0;
  for (auto& [key, found] : found_)
    found.last_serial = 0;
}

Strength BlockChecker::strength(const MicroOp& op) {
  Strength& known = strengths_[op.instruction];
  if (!known.known) {
    const DecodedFunction& function = block_->image->function_of(op.instruction);
    known = strength_of(function.source->form_of(ir::InstructionId(op.instruction - function.first_instruction)));
  }
  return known;
}

BlockChecker::SharedPlace BlockChecker::shared_place(Space space, uint64_t address) {
  if (!block_->cluster) return {this, address};
  const uint64_t rank = address >> shared_rank_shift, offset = address % shared_rank_bytes;
  if (rank == rank_ || (space == Space::shared && rank == 0)) return {this, offset};
  if (space == Space::shared || !block_at(*block_, address)) return {};
  return {&of_rank(static_cast<uint32_t>(rank)), offset};
}

void BlockChecker::access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                          AccessKind kind, std::span<const LaneRef> values) {
  ++serial_;
  LaneAccesses shared;
  shared.op = &op;
  shared.bytes = bytes;
  shared.strength = strength(op);
  shared.values = values;
  shared.is_atomic = kind == AccessKind::atomic;
  shared.clock = known(clocks_[warp.index], warp.index);
  LaneAccesses global = shared;
  std::array<BlockChecker*, warp_size> owners{}; // of the lanes in `shared`
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    SpaceAddress place{space, addresses[lane]};
    if (space == Space::generic) {
      place = split_generic(addresses[lane]);
      if (place.space == Space::shared) place.space = Space::cluster;
    }
    const bool is_shared = place.space == Space::shared || place.space == Space::cluster;
    const SharedPlace in_shared = is_shared ? shared_place(place.space, place.address) : SharedPlace{};
    if (is_shared && !in_shared.owner) continue; // reported by the access itself
    if (shared.strength.strong && (is_shared || place.space == Space::global)) {
      BlockChecker& keeper = is_shared ? *in_shared.owner : home();
      if (!keeper.has_room_for_places()) {
        block_->fail(warp, op, lane,
                     share_.budget()
                         .refusal(places_at_a_time * place_bytes(), "--check, for places of strong accesses,")
                         .message);
        return;
      }
      synchronise(warp, keeper.given_, is_shared ? shared_window + in_shared.offset : place.address, !is_shared,
                  shared.strength, kind);
    }
    if (place.space == Space::local) check_local(warp, op, lane, place.address, bytes, kind);
    LaneAccesses& all = is_shared ? shared : global;
    if (!is_shared && place.space != Space::global) continue;
    // Out of bounds: reported by the access itself.
    if (is_shared && !contains(0, shared_.bytes(), in_shared.offset, bytes)) continue;
    if (place.space == Space::global && !resolve(*block_, warp, lane, Space::global, place.address, bytes)) continue;
    all.addresses[lane] = is_shared ? in_shared.offset : place.address;
    all.lanes |= 1u << lane;
    owners[lane] = in_shared.owner;
  }
  // Checks the lanes grouped by the owner of the shared memory.
  for (uint32_t left = shared.lanes; left; left &= ~shared.lanes) {
    BlockChecker& owner = *owners[std::countr_zero(left)];
    shared.lanes = 0;
    for (uint32_t lanes = left; lanes; lanes &= lanes - 1)
      if (owners[std::countr_zero(lanes)] == &owner) shared.lanes |= lanes & -lanes;
    if (&owner != this) check_started(warp, shared, owner);
    if (kind != AccessKind::store)
      load_shared(warp, shared,
                  {known(clocks_[warp.index], warp.index), op.instruction, static_cast<uint8_t>(warp.index), 0,
                   shared.strength.strong, false, static_cast<uint8_t>(rank_)},
                  owner);
    if (kind != AccessKind::load) store_shared(warp, shared, owner);
  }
  if (global.lanes && kind != AccessKind::store) load_global(warp, global);
  if (global.lanes && kind != AccessKind::load) store_global(warp, global);
}

void BlockChecker::check_started(Warp& warp, const LaneAccesses& access, BlockChecker& owner) {
  const auto lane = static_cast<unsigned>(std::countr_zero(access.lanes));
  owner.last_remote_[rank_ * maximum_warps + warp.index] = {access.clock,
                                                            access.op->instruction,
                                                            static_cast<uint8_t>(warp.index),
                                                            static_cast<uint8_t>(lane),
                                                            access.strength.strong,
                                                            false,
                                                            static_cast<uint8_t>(rank_)};
  // A barrier that all warps have passed shows it, even if its arrivals release nothing.
  for (const Clock* clock : {&clocks_[warp.index], &reached_}) {
    if (clock->known.empty()) continue; // no barrier yet
    const auto begin = clock->known.begin() + owner.rank_ * maximum_agents;
    if (std::any_of(begin, begin + maximum_warps, [](uint32_t known) { return known != 0; })) return;
  }
  Found* found = nullptr;
  if (!is_new(*access.op, FindingKind::race, found)) return;
  describe(*found, {access.op->instruction, warp.index, lane},
           fmt::format("race: shared {:#x}{} of block {} of the cluster is accessed with nothing that says that the "
                       "block has started (barrier.cluster)",
                       access.addresses[lane], name_of_shared(access.addresses[lane]), owner.rank_),
           std::nullopt);
}

void BlockChecker::load_shared(Warp& warp, const LaneAccesses& access, ShadowAccess read, BlockChecker& owner) {
  const bool is_product = read.warp >= maximum_warps;
  uint64_t previous = UINT64_MAX;
  for (uint32_t lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint64_t start = access.addresses[lane];
    if (start == previous) continue;
    previous = start;
    unsigned missing = 0;
    read.lane = static_cast<uint8_t>(lane);
    owner.shared_.for_each(start, access.bytes, [&](ShadowCell& cell, uint64_t address, unsigned bytes) {
      if (!cell.initialised) missing += bytes;
      if (!ordered(cell.write, warp.index) && !(cell.write.strong && access.strength.strong))
        report_race(warp, access, lane, address, cell.write, access.is_atomic ? "changed" : "read", "written", owner);
      if (is_product || (access.strength.by_async_proxy && !access.is_atomic))
        check_proxy(warp, access, lane, address, cell.write);
      if (access.is_atomic) return;
      if (&owner == this)
        record_read(cell, read);
      else
        record_remote_read(owner, read, warp.index, address);
    });
    Found* found = nullptr;
    if (missing && is_new(*access.op, FindingKind::uninitialised, found))
      describe(*found, {access.op->instruction, warp.index, lane},
               fmt::format("{} of the {} bytes read at shared {:#x}{} were never written in {} block", missing,
                           access.bytes, start, name_of_shared(start), &owner == this ? "this" : "that"),
               std::nullopt);
  }
}

// Recording one read suffices if all earlier reads happened before it.
void BlockChecker::record_read(ShadowCell& cell, const ShadowAccess& read) {
  if (cell.readers) {
    shared_.readers(cell)[read.warp] = read;
  } else if (cell.read.clock == 0 ||
             (read.warp >= maximum_warps ? cell.read.warp == read.warp : ordered(cell.read, read.warp))) {
    // A weak read is not replaced by a strong one with the same clock.
    if (cell.read.warp == read.warp && cell.read.clock == read.clock && !cell.read.strong) return;
    cell.read = read;
  } else {
    shared_.readers(cell)[read.warp] = read;
  }
}

void BlockChecker::record_remote_read(BlockChecker& owner, const ShadowAccess& read, unsigned warp, uint64_t address) {
  RemoteReads& reads = owner.remote_reads_[address];
  const bool same = reads.last.rank == read.rank && reads.last.warp == read.warp;
  if (!same && !ordered(reads.last, warp)) reads.other = reads.last;
  reads.last = read;
}

void BlockChecker::store_shared(Warp& warp, const LaneAccesses& access, BlockChecker& owner) {
  const bool strong = access.strength.strong;
  for (uint32_t lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint64_t start = access.addresses[lane];
    const ShadowAccess write{known(clocks_[warp.index], warp.index),
                             access.op->instruction,
                             static_cast<uint8_t>(warp.index),
                             static_cast<uint8_t>(lane),
                             strong,
                             access.strength.by_async_proxy,
                             static_cast<uint8_t>(rank_)};
    owner.shared_.for_each(start, access.bytes, [&](ShadowCell& cell, uint64_t address, unsigned bytes) {
      auto same_as = [&](auto&& byte_at) {
        if (access.values.empty()) return false;
        for (uint64_t byte = address; byte < address + bytes; ++byte)
          if (stored_byte(warp, access.values, access.bytes, lane, byte - start) != byte_at(byte)) return false;
        return true;
      };
      if (!strong && cell.write_serial == serial_ && cell.write.rank == rank_ && cell.write.lane != lane &&
          !access.values.empty()) {
        const unsigned other = cell.write.lane;
        const uint64_t other_start = access.addresses[other];
        Found* found = nullptr;
        if (!same_as([&](uint64_t byte) {
              return stored_byte(warp, access.values, access.bytes, other, byte - other_start);
            }) &&
            is_new(*access.op, FindingKind::lane_conflict, found))
          describe(*found, {access.op->instruction, warp.index, lane},
                   fmt::format("lanes {} and {} of the warp write different values to shared {:#x}{} in the same "
                               "instruction",
                               other, lane, address, name_of_shared(address)),
                   std::nullopt);
      }
      if (!ordered(cell.write, warp.index) && !(cell.write.strong && strong) &&
          !same_as([&](uint64_t byte) { return owner.block_->shared[byte]; }))
        report_race(warp, access, lane, address, cell.write, access.is_atomic ? "changed" : "written", "written",
                    owner);
      const auto check_read = [&](const ShadowAccess& read) {
        if (!ordered(read, warp.index) && !(read.strong && strong))
          report_race(warp, access, lane, address, read, access.is_atomic ? "changed" : "written", "read", owner);
      };
      if (cell.readers)
        for (const ShadowAccess& read : owner.shared_.readers(cell))
          check_read(read);
      else
        check_read(cell.read);
      if (const auto remote = owner.remote_reads_.find(address); remote != owner.remote_reads_.end()) {
        check_read(remote->second.last);
        check_read(remote->second.other);
        owner.remote_reads_.erase(remote);
      }
      owner.shared_.drop_readers(cell);
      cell.write = write;
      cell.write_serial = serial_;
      cell.initialised = true;
    });
  }
}

// --- asynchronous matrix products ---

void BlockChecker::proxy_fence(Warp& warp) {
  std::vector<uint32_t>& numbers = clocks_[warp.index].known;
  for (uint32_t rank = 0; rank < ranks(); ++rank)
    std::copy_n(numbers.begin() + rank * maximum_agents, maximum_warps,
                numbers.begin() + static_cast<std::ptrdiff_t>(proxied_place(rank, 0)));
}

void BlockChecker::product_reads(Warp& warp, const MicroOp& op, const uint64_t* addresses, uint64_t bytes,
                                 uint32_t number) {
  ++serial_;
  LaneAccesses reads;
  reads.op = &op;
  reads.bytes = bytes;
  reads.lanes = warp.mask;
  std::copy_n(addresses, warp_size, reads.addresses.begin());
  const unsigned agent = maximum_warps + warp.index / warps_of_group;
  load_shared(warp, reads,
              {number, op.instruction, static_cast<uint8_t>(agent), 0, false, true, static_cast<uint8_t>(rank_)},
              *this);
}

void BlockChecker::products_done(Warp& warp, uint32_t number) {
  uint32_t& done = known(clocks_[warp.index], maximum_warps + warp.index / warps_of_group);
  done = std::max(done, number);
}

void BlockChecker::release_products(Warp& warp, Space space, uint64_t address, uint32_t number) {
  if (space == Space::generic) {
    space = Space::cluster;
    address = split_generic(address).address;
  }
  const SharedPlace place = shared_place(space, address);
  if (!place.owner) return;
  // The warp itself acquires the products like all others.
  Clock done = clocks_[warp.index];
  known(done, maximum_warps + warp.index / warps_of_group) = number;
  join(place.owner->given_[shared_window + place.offset], done);
  ++known(clocks_[warp.index], warp.index);
}

bool BlockChecker::knows(const Warp& warp, uint32_t rank, uint32_t of, uint32_t clock, bool by_products) const {
  const unsigned agent = by_products ? maximum_warps + of / warps_of_group : of;
  const std::vector<uint32_t>& known = clocks_[warp.index].known;
  return clock <= std::max(known[rank * maximum_agents + agent], known[tensor_place(rank, agent)]);
}

void BlockChecker::tensor_memory_misuse(Warp& warp, const MicroOp& op, std::string_view what,
                                        std::optional<OtherPlace> other) {
  ++serial_;
  Found* found = nullptr;
  if (!is_new(op, FindingKind::tensor_memory, found)) return;
  std::optional<Place> place;
  if (other)
    place = Place{other->instruction, other->warp, 0, std::nullopt,
                  other->rank == rank_ ? std::nullopt : std::optional<uint32_t>(other->rank)};
  describe(*found, {op.instruction, warp.index, static_cast<unsigned>(std::countr_zero(warp.mask))},
           fmt::format("tensor memory: {}", what), place);
}

// Reports a missing fence unless an asynchronous operation wrote the byte, or a known fence follows the write.
void BlockChecker::check_proxy(Warp& warp, const LaneAccesses& access, unsigned lane, uint64_t address,
                               const ShadowAccess& write) {
  if (write.clock == 0 || write.by_async_proxy ||
      write.clock <= clocks_[warp.index].known[proxied_place(write.rank, write.warp)])
    return;
  if (!ordered(write, warp.index)) return; // a race, reported already
  Found* found = nullptr;
  if (!is_new(*access.op, FindingKind::missing_fence, found)) return;
  describe(
      *found, {access.op->instruction, warp.index, lane},
      fmt::format("missing fence: the {} reads shared {:#x}{}, which warp {} has written with no fence.proxy.async "
                  "behind",
                  access.strength.by_async_proxy ? "bulk copy" : "matrix product", address, name_of_shared(address),
                  write.warp),
      Place{write.instruction, write.warp, write.lane, std::nullopt,
            write.rank == rank_ ? std::nullopt : std::optional<uint32_t>(write.rank)});
}

void BlockChecker::missing_fence(Warp& warp, const MicroOp& op, std::string_view what) {
  ++serial_;
  Found* found = nullptr;
  if (!is_new(op, FindingKind::missing_fence, found)) return;
  describe(*found, {op.instruction, warp.index, static_cast<unsigned>(std::countr_zero(warp.mask))},
           fmt::format("missing fence: {}", what), std::nullopt);
}

} // namespace ptxrewrite::emulator
