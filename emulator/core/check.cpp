#include "emulator/core/check.h"

#include "emulator/core/decode.h"
#include "emulator/core/function_end.h"
#include "emulator/core/watch.h"
#include "emulator/memory/global_shadow.h"
#include "emulator/memory/shadow.h"
#include "ir/core/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace ptxrewrite::emulator {
namespace {

constexpr unsigned maximum_warps = 32; // of a block
constexpr unsigned warps_of_group = 4;
constexpr unsigned maximum_agents = shadow_readers; // warps, and the matrix products of each warp group

// The vector clock of a warp: the latest clock of each warp of its block, and of the other blocks, that it has
// synchronised with.
struct Clock {
  std::array<uint32_t, maximum_agents> warps{};
  std::array<uint32_t, maximum_warps> proxied{}; // the latest write of each that asynchronous operations may read
  uint32_t others = 0; // the moment up to which all accesses of all blocks have happened before
  uint32_t fenced = 0; // the moment of the last fence
  uint32_t& operator[](size_t warp) { return warps[warp]; }
  uint32_t operator[](size_t warp) const { return warps[warp]; }
};
constexpr uint64_t place_bytes = 2 * sizeof(Clock), places_at_a_time = 4096;

void join(Clock& clock, const Clock& other) {
  for (unsigned agent = 0; agent < maximum_agents; ++agent)
    clock[agent] = std::max(clock[agent], other[agent]);
  for (unsigned warp = 0; warp < maximum_warps; ++warp)
    clock.proxied[warp] = std::max(clock.proxied[warp], other.proxied[warp]);
  clock.others = std::max(clock.others, other.others);
  clock.fenced = std::max(clock.fenced, other.fenced);
}

// What the checker has to know of a memory instruction.
struct Strength {
  bool known = false;
  bool strong = false;
  bool acquires = false;
  bool releases = false;
  bool by_async_proxy = false;
};

Strength strength_of(const ir::Form& form) {
  using ir::Modifier;
  Strength strength;
  strength.known = true;
  const bool is_synchronising = form.opcode == ir::Opcode::mbarrier;
  strength.acquires = is_synchronising || form.has(Modifier::acquire) || form.has(Modifier::acq_rel);
  strength.releases = is_synchronising || form.has(Modifier::release) || form.has(Modifier::acq_rel);
  strength.strong = strength.acquires || strength.releases || form.opcode == ir::Opcode::atom ||
                    form.opcode == ir::Opcode::red || form.has(Modifier::volatile_) || form.has(Modifier::relaxed);
  strength.by_async_proxy = form.opcode == ir::Opcode::cp && form.has(Modifier::bulk);
  return strength;
}

// The lanes of one instruction that access shared or global memory, with their addresses there.
struct LaneAccesses {
  const MicroOp* op = nullptr;
  std::array<uint64_t, warp_size> addresses;
  uint32_t lanes = 0;
  uint64_t bytes = 0;
  Strength strength;
  std::span<const LaneRef> values;
  bool is_atomic = false;
};

Dimensions index_in(const Dimensions& grid, uint64_t number) {
  return {static_cast<uint32_t>(number % grid.x), static_cast<uint32_t>(number / grid.x % grid.y),
          static_cast<uint32_t>(number / grid.x / grid.y)};
}

class BlockChecker final : public MemoryChecker {
public:
  explicit BlockChecker(const LaunchState& launch)
      : global_(*launch.global_shadow), shared_(launch.shared_bytes), local_(launch.warps * warp_size),
        strengths_(launch.image->instruction_count), share_(launch.memory->budget()) {}

  void start_block(Block& block) override;
  void access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes, AccessKind kind,
              std::span<const LaneRef> values) override;
  void fence(Warp& warp) override;
  void proxy_fence(Warp& warp) override;
  void product_reads(Warp& warp, const MicroOp& op, const uint64_t* addresses, uint64_t bytes,
                     uint32_t number) override;
  void products_done(Warp& warp, uint32_t number) override;
  void missing_register_fence(Warp& warp, const MicroOp& op, std::string_view what) override;
  void release(Warp& warp, uint64_t shared_address) override;
  void allocated(uint64_t address, uint64_t bytes) override;
  void barrier_executed(Warp& warp, const MicroOp& op, unsigned number, uint32_t expected_warps, bool aligned) override;
  void lanes_gathered(Warp& warp) override;
  void warp_arrived(Warp& warp, unsigned number) override;
  void barrier_completed(Block& block, unsigned number, uint32_t waiting_warps, bool of_all) override;
  void activation_started(Warp& warp, const Activation& activation) override;
  void local_written(Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes) override;
  void take_findings(FindingTable& findings) override;

private:
  struct Place { // of an access that something is said about
    uint32_t instruction = 0;
    uint32_t warp = 0;
    unsigned lane = 0;
    std::optional<uint64_t> block = std::nullopt; // of another one
  };
  struct Found {
    uint64_t times = 0;
    std::optional<Finding> finding;
    bool described = false; // in this block or an earlier one
    uint32_t last_serial = 0;
  };
  struct BarrierUse {
    bool in_phase = false;
    uint32_t needed = 0;
    Place first;
  };

  bool has_room_for_places();
  Strength strength(const MicroOp& op);
  bool ordered(const ShadowAccess& before, unsigned warp) const { return before.clock <= clocks_[warp][before.warp]; }
  // `read`: as it is remembered, in each lane.
  void load_shared(Warp& warp, const LaneAccesses& access, ShadowAccess read);
  void check_proxy(Warp& warp, const LaneAccesses& access, unsigned lane, uint64_t address, const ShadowAccess& write);
  void store_shared(Warp& warp, const LaneAccesses& access);
  void record_read(ShadowCell& cell, const ShadowAccess& read);
  bool ordered(const GlobalAccess& before, unsigned warp) const;
  GlobalAccess global_access(const LaneAccesses& access, const Warp& warp, unsigned lane) const;
  void load_global(Warp& warp, const LaneAccesses& access);
  void store_global(Warp& warp, const LaneAccesses& access);
  void record_read(GlobalCell& cell, const GlobalAccess& read) const;
  void find_lane_conflict(Warp& warp, const LaneAccesses& access);
  void check_local(Warp& warp, const MicroOp& op, unsigned lane, uint64_t address, uint64_t bytes, AccessKind kind);
  void synchronise(Warp& warp, Space space, uint64_t address, const Strength& strength, AccessKind kind);
  void report_race(Warp& warp, const LaneAccesses& access, unsigned lane, uint64_t address, const ShadowAccess& other,
                   const char* what, const char* other_what);
  void report_race(const LaneAccesses& access, const GlobalAccess& here, uint64_t address, const GlobalAccess& other,
                   const char* what, const char* other_what);
  // Counts a finding once per instruction executed; true: it has to be described, too.
  bool is_new(const MicroOp& op, FindingKind kind, Found*& found);
  void describe(Found& found, const Place& here, std::string message, const std::optional<Place>& other);
  std::string name_of_shared(uint64_t address) const;

  Block* block_ = nullptr;
  GlobalShadow& global_; // of the launch; its blocks run on one host thread
  SharedShadow shared_;
  LocalShadow local_;
  std::vector<Strength> strengths_; // by image-wide instruction
  MemoryShare share_;               // of given_
  size_t most_given_ = 0;           // places that there is memory for
  std::array<Clock, maximum_warps> clocks_{};
  std::array<Clock, maximum_warps> fenced_{};  // what a strong write gives away
  std::array<Clock, maximum_warps> pending_{}; // what strong reads found, until a fence
  std::array<bool, maximum_warps> has_fenced_{};
  std::array<Clock, 16> barrier_clocks_{};
  std::array<BarrierUse, 16> barrier_uses_{};
  std::unordered_map<uint64_t, Clock> given_; // by address: what strong writes gave
  std::map<FindingTable::Key, Found> found_;
  uint32_t serial_ = 0; // of the instruction that is being looked at
};

void BlockChecker::start_block(Block& block) {
  block_ = &block;
  shared_.clear();
  local_.clear();
  clocks_ = {};
  fenced_ = {};
  pending_ = {};
  has_fenced_ = {};
  for (unsigned warp = 0; warp < maximum_warps; ++warp)
    clocks_[warp][warp] = 1;
  barrier_clocks_ = {};
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

// --- memory ---

void BlockChecker::access(Warp& warp, const MicroOp& op, Space space, const uint64_t* addresses, uint64_t bytes,
                          AccessKind kind, std::span<const LaneRef> values) {
  ++serial_;
  LaneAccesses shared;
  shared.op = &op;
  shared.bytes = bytes;
  shared.strength = strength(op);
  shared.values = values;
  shared.is_atomic = kind == AccessKind::atomic;
  LaneAccesses global = shared;
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    SpaceAddress place{space, addresses[lane]};
    if (space == Space::generic) place = split_generic(addresses[lane]);
    if (shared.strength.strong) {
      if (!has_room_for_places()) {
        block_->fail(
            warp, op, lane,
            share_.budget().refusal(places_at_a_time * place_bytes, "--check, for places of strong accesses,").message);
        return;
      }
      synchronise(warp, place.space, place.address, shared.strength, kind);
    }
    if (place.space == Space::local) check_local(warp, op, lane, place.address, bytes, kind);
    LaneAccesses& all = place.space == Space::shared ? shared : global;
    if (place.space != Space::shared && place.space != Space::global) continue;
    // Out of bounds: the access itself will say so.
    if (place.space == Space::shared && !contains(0, shared_.bytes(), place.address, bytes)) continue;
    if (place.space == Space::global && !resolve(*block_, warp, lane, Space::global, place.address, bytes)) continue;
    all.addresses[lane] = place.address;
    all.lanes |= 1u << lane;
  }
  if (shared.lanes && kind != AccessKind::store)
    load_shared(warp, shared,
                {clocks_[warp.index][warp.index], op.instruction, static_cast<uint8_t>(warp.index), 0,
                 shared.strength.strong, false});
  if (shared.lanes && kind != AccessKind::load) store_shared(warp, shared);
  if (global.lanes && kind != AccessKind::store) load_global(warp, global);
  if (global.lanes && kind != AccessKind::load) store_global(warp, global);
}

void BlockChecker::load_shared(Warp& warp, const LaneAccesses& access, ShadowAccess read) {
  const bool is_product = read.warp >= maximum_warps;
  uint64_t previous = UINT64_MAX;
  for (uint32_t lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint64_t start = access.addresses[lane];
    if (start == previous) continue;
    previous = start;
    unsigned missing = 0;
    read.lane = static_cast<uint8_t>(lane);
    shared_.for_each(start, access.bytes, [&](ShadowCell& cell, uint64_t address, unsigned bytes) {
      if (!cell.initialised) missing += bytes;
      if (!ordered(cell.write, warp.index) && !(cell.write.strong && access.strength.strong))
        report_race(warp, access, lane, address, cell.write, access.is_atomic ? "changed" : "read", "written");
      if (is_product) check_proxy(warp, access, lane, address, cell.write);
      if (!access.is_atomic) record_read(cell, read);
    });
    Found* found = nullptr;
    if (missing && is_new(*access.op, FindingKind::uninitialised, found))
      describe(*found, {access.op->instruction, warp.index, lane},
               fmt::format("{} of the {} bytes read at shared {:#x}{} were never written in this block", missing,
                           access.bytes, start, name_of_shared(start)),
               std::nullopt);
  }
}

// One read is enough to remember while all others happened before it.
void BlockChecker::record_read(ShadowCell& cell, const ShadowAccess& read) {
  if (cell.readers) {
    shared_.readers(cell)[read.warp] = read;
  } else if (cell.read.clock == 0 ||
             (read.warp >= maximum_warps ? cell.read.warp == read.warp : ordered(cell.read, read.warp))) {
    // A weak read is not hidden by a strong one of the same time.
    if (cell.read.warp == read.warp && cell.read.clock == read.clock && !cell.read.strong) return;
    cell.read = read;
  } else {
    shared_.readers(cell)[read.warp] = read;
  }
}

// Byte `index` of what a store will write in `lane`.
std::byte stored_byte(const Warp& warp, std::span<const LaneRef> values, uint64_t bytes, unsigned lane,
                      uint64_t index) {
  const uint64_t width = bytes / values.size();
  return warp.lanes<std::byte>(values[index / width])[lane * width + index % width];
}

void BlockChecker::store_shared(Warp& warp, const LaneAccesses& access) {
  const bool strong = access.strength.strong;
  for (uint32_t lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint64_t start = access.addresses[lane];
    const ShadowAccess write{clocks_[warp.index][warp.index],
                             access.op->instruction,
                             static_cast<uint8_t>(warp.index),
                             static_cast<uint8_t>(lane),
                             strong,
                             access.strength.by_async_proxy};
    shared_.for_each(start, access.bytes, [&](ShadowCell& cell, uint64_t address, unsigned bytes) {
      auto same_as = [&](auto&& byte_at) {
        if (access.values.empty()) return false;
        for (uint64_t byte = address; byte < address + bytes; ++byte)
          if (stored_byte(warp, access.values, access.bytes, lane, byte - start) != byte_at(byte)) return false;
        return true;
      };
      if (!strong && cell.write_serial == serial_ && cell.write.lane != lane && !access.values.empty()) {
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
          !same_as([&](uint64_t byte) { return block_->shared[byte]; }))
        report_race(warp, access, lane, address, cell.write, access.is_atomic ? "changed" : "written", "written");
      const auto check_read = [&](const ShadowAccess& read) {
        if (!ordered(read, warp.index) && !(read.strong && strong))
          report_race(warp, access, lane, address, read, access.is_atomic ? "changed" : "written", "read");
      };
      if (cell.readers)
        for (const ShadowAccess& read : shared_.readers(cell))
          check_read(read);
      else
        check_read(cell.read);
      shared_.drop_readers(cell);
      cell.write = write;
      cell.write_serial = serial_;
      cell.initialised = true;
    });
  }
}

// --- asynchronous matrix products ---

void BlockChecker::proxy_fence(Warp& warp) {
  Clock& clock = clocks_[warp.index];
  std::copy_n(clock.warps.begin(), maximum_warps, clock.proxied.begin());
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
  load_shared(warp, reads, {number, op.instruction, static_cast<uint8_t>(agent), 0, false, true});
}

void BlockChecker::products_done(Warp& warp, uint32_t number) {
  uint32_t& known = clocks_[warp.index][maximum_warps + warp.index / warps_of_group];
  known = std::max(known, number);
}

// Was the byte written by an asynchronous operation, or is there a fence behind the write that the reader knows of?
void BlockChecker::check_proxy(Warp& warp, const LaneAccesses& access, unsigned lane, uint64_t address,
                               const ShadowAccess& write) {
  if (write.clock == 0 || write.by_async_proxy || write.clock <= clocks_[warp.index].proxied[write.warp]) return;
  if (!ordered(write, warp.index)) return; // a race, which has been told
  Found* found = nullptr;
  if (!is_new(*access.op, FindingKind::missing_fence, found)) return;
  describe(*found, {access.op->instruction, warp.index, lane},
           fmt::format("missing fence: the matrix product reads shared {:#x}{}, which warp {} has written with no "
                       "fence.proxy.async behind",
                       address, name_of_shared(address), write.warp),
           Place{write.instruction, write.warp, write.lane});
}

void BlockChecker::missing_register_fence(Warp& warp, const MicroOp& op, std::string_view what) {
  ++serial_;
  Found* found = nullptr;
  if (!is_new(op, FindingKind::missing_fence, found)) return;
  describe(*found, {op.instruction, warp.index, static_cast<unsigned>(std::countr_zero(warp.mask))},
           fmt::format("missing fence: {}", what), std::nullopt);
}

// --- global memory ---

bool BlockChecker::ordered(const GlobalAccess& before, unsigned warp) const {
  if (before.clock == 0 || before.moment <= clocks_[warp].others) return true;
  return before.block == static_cast<uint32_t>(block_->linear) && before.clock <= clocks_[warp][before.warp];
}

GlobalAccess BlockChecker::global_access(const LaneAccesses& access, const Warp& warp, unsigned lane) const {
  // A strong write that gives a moment away belongs to it: who found it there may write the place plainly.
  const uint32_t fenced = clocks_[warp.index].fenced;
  return {.clock = clocks_[warp.index][warp.index],
          .instruction = access.op->instruction,
          .block = static_cast<uint32_t>(block_->linear),
          .moment = access.strength.strong && fenced ? fenced : global_.moment(),
          .warp = static_cast<uint8_t>(warp.index),
          .lane = static_cast<uint8_t>(lane),
          .strong = access.strength.strong};
}

// Where a strong write meets a read, nothing is said: flags and counters are looked at in passing.
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

// A store of the bytes that are there changes nothing, and races with nothing.
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

// Which of the lanes that write one place in one instruction is the last is not defined.
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

// --- order ---

// For one more place in given_.
bool BlockChecker::has_room_for_places() {
  if (given_.size() < most_given_) return true;
  if (!share_.try_grow(places_at_a_time * place_bytes)) return false;
  most_given_ += places_at_a_time;
  return true;
}

// A strong access gives what the warp fenced to its place, and takes what others gave there.
void BlockChecker::synchronise(Warp& warp, Space space, uint64_t address, const Strength& strength, AccessKind kind) {
  if (space != Space::shared && space != Space::global) return;
  const uint64_t place = space == Space::shared ? shared_window + address : address;
  const unsigned self = warp.index;
  if (kind != AccessKind::store)
    if (auto given = given_.find(place); given != given_.end()) {
      join(strength.acquires ? clocks_[self] : pending_[self], given->second);
    }
  // What other blocks gave is known without a fence: no warning rests on one that a reader left out.
  if (space == Space::global && kind != AccessKind::store)
    clocks_[self].others = std::max(clocks_[self].others, global_.given(address));
  if (kind == AccessKind::load) return;
  if (strength.releases) clocks_[self].fenced = global_.pass_moment();
  if (space == Space::global && clocks_[self].fenced) global_.give(address, clocks_[self].fenced);
  if (strength.releases) {
    join(given_[place], clocks_[self]);
    ++clocks_[self][self];
  } else if (has_fenced_[self]) {
    join(given_[place], fenced_[self]);
  }
}

void BlockChecker::fence(Warp& warp) {
  const unsigned self = warp.index;
  join(clocks_[self], pending_[self]);
  clocks_[self].fenced = global_.pass_moment();
  fenced_[self] = clocks_[self];
  has_fenced_[self] = true;
  ++clocks_[self][self];
}

void BlockChecker::release(Warp& warp, uint64_t shared_address) {
  join(given_[shared_window + shared_address], clocks_[warp.index]);
  ++clocks_[warp.index][warp.index];
}

void BlockChecker::allocated(uint64_t address, uint64_t bytes) {
  global_.forget(address, bytes);
}

void BlockChecker::warp_arrived(Warp& warp, unsigned number) {
  join(clocks_[warp.index], pending_[warp.index]);
  join(barrier_clocks_[number], clocks_[warp.index]);
  fenced_[warp.index] = clocks_[warp.index];
  ++clocks_[warp.index][warp.index];
}

void BlockChecker::barrier_completed(Block& block, unsigned number, uint32_t waiting_warps, bool of_all) {
  // A warp that has ended will never come, and is taken to have arrived.
  for (const Warp& warp : block.warps)
    if (of_all && warp.state == WarpState::finished) join(barrier_clocks_[number], clocks_[warp.index]);
  for (; waiting_warps; waiting_warps &= waiting_warps - 1)
    join(clocks_[static_cast<unsigned>(std::countr_zero(waiting_warps))], barrier_clocks_[number]);
  barrier_clocks_[number] = {};
  barrier_uses_[number] = {};
}

// --- barriers ---

// Do lanes that meet at `at` end there at once? Those are as good as ended.
bool ends_threads(const Meeting& meeting) {
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

// --- findings ---

bool BlockChecker::is_new(const MicroOp& op, FindingKind kind, Found*& found) {
  found = &found_[{op.instruction, kind}];
  if (found->last_serial == serial_) return false;
  found->last_serial = serial_;
  ++found->times;
  return !found->described;
}

void BlockChecker::describe(Found& found, const Place& here, std::string message, const std::optional<Place>& other) {
  auto failure_at = [&](const Place& place, std::string text) {
    MicroOp op;
    op.instruction = place.instruction;
    Failure failure =
        block_->describe(block_->warps[place.warp], op, place.lane, std::move(text), FailureKind::program_fault);
    if (place.block) failure.block = index_in(block_->launch->request->grid, *place.block);
    return failure;
  };
  found.described = true;
  found.finding = Finding{failure_at(here, std::move(message)), 1, std::nullopt};
  if (other) found.finding->other = failure_at(*other, {});
}

void BlockChecker::report_race(Warp& warp, const LaneAccesses& access, unsigned lane, uint64_t address,
                               const ShadowAccess& other, const char* what, const char* other_what) {
  Found* found = nullptr;
  if (!is_new(*access.op, FindingKind::race, found)) return;
  const bool by_product = other.warp >= maximum_warps;
  const unsigned other_warp = by_product ? (other.warp - maximum_warps) * warps_of_group : other.warp;
  const std::string other_name = by_product ? fmt::format("an asynchronous matrix product of warps {}-{}", other_warp,
                                                          other_warp + warps_of_group - 1)
                                            : fmt::format("warp {}", other_warp);
  describe(*found, {access.op->instruction, warp.index, lane},
           fmt::format("race: shared {:#x}{} is {} by warp {} and {} by {}, with nothing that orders the two", address,
                       name_of_shared(address), what, warp.index, other_what, other_name),
           Place{other.instruction, other_warp, other.lane});
}

void BlockChecker::report_race(const LaneAccesses& access, const GlobalAccess& here, uint64_t address,
                               const GlobalAccess& other, const char* what, const char* other_what) {
  Found* found = nullptr;
  if (!is_new(*access.op, FindingKind::race, found)) return;
  const bool same_block = here.block == other.block;
  const std::string by = same_block ? fmt::format("by warp {}", here.warp) : "by this block";
  const std::string other_by = same_block ? fmt::format("by warp {}", other.warp) : "by another one";
  describe(*found, {here.instruction, here.warp, here.lane},
           fmt::format("race: global {:#x} ({}) is {} {} and {} {}, with nothing that orders the two", address,
                       block_->launch->memory->describe(address), what, by, other_what, other_by),
           Place{other.instruction, other.warp, other.lane, other.block});
}

// " ('tile' + 16)", or nothing.
std::string BlockChecker::name_of_shared(uint64_t address) const {
  const KernelImage& image = *block_->image;
  const std::pair<const ir::Function*, uint32_t>* best = nullptr;
  uint64_t best_offset = 0;
  for (const auto& [variable, offset] : image.shared_offsets)
    if (offset <= address && (!best || offset >= best_offset)) {
      best = &variable;
      best_offset = offset;
    }
  if (!best) return {};
  const ir::VariableId id(best->second);
  const Symbol name = best->first ? best->first->variables[id].name : image.module->variables[id].name;
  if (address == best_offset) return fmt::format(" ('{}')", image.module->text(name));
  return fmt::format(" ('{}' + {})", image.module->text(name), address - best_offset);
}

void BlockChecker::take_findings(FindingTable& findings) {
  for (auto& [key, found] : found_) {
    if (found.times == 0) continue;
    findings.add(key, block_->linear, found.times, std::move(found.finding));
    found.times = 0;
    found.finding.reset();
  }
}

} // namespace

void FindingTable::add(const Key& key, uint64_t block, uint64_t times, std::optional<Finding> finding) {
  Entry& entry = entries_[key];
  entry.times.emplace_back(block, times);
  if (block >= entry.first_block || !finding) return;
  entry.first_block = block;
  entry.finding = std::move(*finding);
}

std::vector<Finding> FindingTable::take(uint64_t last_block) {
  std::vector<Finding> findings;
  for (auto& [key, entry] : entries_) {
    if (entry.first_block > last_block) continue;
    entry.finding.times = 0;
    for (const auto& [block, times] : entry.times)
      if (block <= last_block) entry.finding.times += times;
    findings.push_back(std::move(entry.finding));
  }
  entries_.clear();
  return findings;
}

std::unique_ptr<MemoryChecker> make_memory_checker(const LaunchState& launch) {
  return std::make_unique<BlockChecker>(launch);
}

} // namespace ptxrewrite::emulator
