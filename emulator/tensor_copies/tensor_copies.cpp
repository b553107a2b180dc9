// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and cp.async.bulk.prefetch.tensor (PTX ISA 9.7.9.27.1): each lane
// copies a box of a tensor in global memory to or from shared memory of its block, or to other blocks of the cluster,
// as described by the tensor map at a given address. The map is read when the copy is issued; bytes are moved at the
// same time, or with LaunchRequest::late_copies when a thread waits for them.
#include "emulator/core/check.h"
#include "emulator/core/copies.h"
#include "emulator/core/watch.h"
#include "emulator/memory/mbarrier_word.h"
#include "emulator/special/async_access.h"
#include "emulator/special/matrix.h"
#include "emulator/tensor_copies/map_access.h"
#include "emulator/tensor_copies/tensor_tile.h"
#include "emulator/tensor_copies/tile_transfer.h"
#include "support/sizes.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t box_alignment = 128; // in shared memory (CUDA C++ Programming Guide, "Alignment requirements for
                                        // multi-dimensional bulk tensor asynchronous copy operations")

// The statically known part of an instruction.
struct TensorCopy {
  TransferKind kind = TransferKind::load;
  TileShape shape = TileShape::box;
  unsigned rank = 1;
  unsigned coordinates = 1, offsets = 0;
  bool has_barrier = false;
  bool to_cluster = false; // shared::cluster: the destination may be in another block
  bool multicast = false;  // to the blocks of a mask, which is last in the list
  bool of_pair = false;    // .cta_group::2: the bytes may be counted in the other block of the pair
  ReduceOperation reduction = ReduceOperation::add;
  DataReport report = DataReport::none;
  AddressSource shared, map, barrier;
  // Overrides of fields of the map; invalid or empty where the map is not overridden. Strides are in units of 16 bytes:
  // the low 32 bits of each, and the high 4 bits of each packed into one number.
  LaneRef address, high_strides;
  std::vector<LaneRef> sizes, low_strides;
};

// The list of an instruction's registers: the coordinates, then the im2col offsets, then the mask.
class TensorOperands {
public:
  TensorOperands(const Warp& warp, const MicroOp& op)
      : warp_(warp), list_(warp.activation->function->lists.data() + op.extra),
        copy_(*static_cast<const TensorCopy*>(warp.activation->function->descriptions[op.auxiliary].get())) {}

  const TensorCopy& copy() const { return copy_; }
  uint64_t address(const AddressSource& source, unsigned lane) const {
    return lane_address(warp_, source.base, source.narrow, source.offset, lane);
  }
  void read_place(TensorTile& tile, unsigned lane) const {
    for (unsigned i = 0; i < copy_.coordinates; ++i)
      tile.coordinates[i] = warp_.lanes<int32_t>(list_[i])[lane];
    for (unsigned i = 0; i < copy_.offsets; ++i)
      tile.offsets[i] = warp_.lanes<uint16_t>(list_[copy_.coordinates + i])[lane];
  }

  uint32_t mask(unsigned lane) const { return warp_.lanes<uint32_t>(list_[copy_.coordinates + copy_.offsets])[lane]; }

private:
  const Warp& warp_;
  const LaneRef* list_;
  const TensorCopy& copy_;
};

// Reused from one copy to the next, so that copies allocate no memory of the host.
struct Scratch {
  std::vector<FoundRun> runs;
  std::vector<uint64_t> addresses;
};
Scratch& scratch() {
  thread_local Scratch kept;
  return kept;
}

// A lane's copy while it is issued.
class Issue {
public:
  Issue(Warp& warp, const MicroOp& op, unsigned lane)
      : warp_(warp), op_(op), lane_(lane), operands_(warp, op), runs_(scratch().runs), addresses_(scratch().addresses) {
  }

  // Returns false if the block has failed.
  bool run();

private:
  bool fail(std::string message) {
    warp_.block->fail(warp_, op_, lane_, std::move(message));
    return false;
  }
  bool read_tile();
  bool override_map();
  bool copy_to(const CopyTarget& target);
  bool find_shared(uint64_t address);
  bool find_runs();
  bool find_barrier(const CopyTarget& target);
  bool watch(const CopyTarget& target);
  bool start();

  const TensorCopy& copy() const { return operands_.copy(); }

  Warp& warp_;
  const MicroOp& op_;
  unsigned lane_;
  TensorOperands operands_;
  TensorTile tile_;
  TileTransfer transfer_;
  Space shared_space_ = Space::shared;
  bool has_runs_ = false;
  uint64_t bytes_ = 0; // size of the box
  std::vector<FoundRun>& runs_;
  std::vector<uint64_t>& addresses_; // addresses of the runs, for --check and observers
  std::byte* barrier_ = nullptr;
};

bool Issue::run() {
  if (!read_tile()) return false;
  if (copy().to_cluster) shared_space_ = Space::cluster;
  CopyTarget target{operands_.address(copy().shared, lane_), 0, copy().of_pair};
  if (copy().has_barrier) target.barrier = operands_.address(copy().barrier, lane_);
  if (!copy().multicast) return copy_to(target);
  return for_each_target(warp_, op_, lane_, operands_.mask(lane_), target,
                         [&](const CopyTarget& there) { return copy_to(there); });
}

bool Issue::copy_to(const CopyTarget& target) {
  return find_shared(target.to) && (has_runs_ || find_runs()) && has_room_for_copy(warp_, op_, lane_) &&
         find_barrier(target) && (!warp_.block->watch_memory || watch(target)) && start();
}

bool Issue::read_tile() {
  const uint64_t at = operands_.address(copy().map, lane_);
  if (!read_tensor_map_at(warp_, op_, lane_, at, tile_.map) || !override_map()) return false;
  if (std::string wrong = ir::find_fault(tile_.map); !wrong.empty())
    return fail(fmt::format("tensor map at {:#x}: {}", at, wrong));
  if (tile_.map.rank != copy().rank)
    return fail(fmt::format("tensor map at {:#x} of a tensor with {} dimensions; the instruction has {}", at,
                            tile_.map.rank, copy().rank));
  tile_.shape = copy().shape;
  operands_.read_place(tile_, lane_);
  if (std::string wrong = find_fault(tile_, copy().kind != TransferKind::load); !wrong.empty())
    return fail(fmt::format("tensor copy by the map at {:#x}: {}", at, wrong));
  transfer_.kind = copy().kind;
  transfer_.element = tile_.map.element;
  transfer_.fill = tile_.map.fill;
  transfer_.report = copy().report;
  transfer_.swizzle = swizzle_of(tile_.map.swizzle, tile_.map.atom);
  transfer_.concurrent = warp_.block->launch->concurrent;
  if (copy().kind != TransferKind::reduce) return true;
  transfer_.reduce = reduce_tensor_elements(copy().reduction, tile_.map.element);
  return transfer_.reduce || fail(fmt::format("tensor copy by the map at {:#x}: there is no .{} of elements of type {}",
                                              at, name_of(copy().reduction), spelling(tile_.map.element)));
}

// PTX ISA 9.4, .override::global_address, ::global_dim and ::global_dim_stride.
bool Issue::override_map() {
  ir::TensorMap& map = tile_.map;
  if (copy().address) map.address = warp_.lanes<uint64_t>(copy().address)[lane_];
  if (copy().sizes.empty()) return true;
  for (size_t i = 0; i < copy().sizes.size(); ++i)
    map.dims[i] = warp_.lanes<uint32_t>(copy().sizes[i])[lane_];
  for (size_t i = 0; i < copy().low_strides.size(); ++i) {
    const uint64_t low = warp_.lanes<uint32_t>(copy().low_strides[i])[lane_];
    const uint64_t high = warp_.lanes<uint32_t>(copy().high_strides)[lane_] >> 4 * i & 0xf;
    map.strides[i + 1] = (low | high << 32) << 4;
  }
  TensorTile place;
  operands_.read_place(place, lane_);
  for (unsigned i = 0; i < copy().coordinates; ++i)
    if (place.coordinates[i] != 0)
      return fail(fmt::format("coordinate {} is {}; a copy that overrides the sizes of its map starts at 0", i,
                              place.coordinates[i]));
  return true;
}

bool Issue::find_shared(uint64_t address) {
  bytes_ = tile_.bytes();
  // A swizzle permutes chunks within lines.
  const uint64_t reach = transfer_.swizzle.chunks > 1 ? align_up(bytes_, line_bytes) : bytes_;
  transfer_.shared = lane_bytes(warp_, op_, lane_, shared_space_, address, reach, box_alignment, "tensor copy");
  transfer_.start = static_cast<uint32_t>(address);
  return transfer_.shared != nullptr;
}

bool Issue::find_runs() {
  const bool watched = warp_.block->watch_memory;
  runs_.clear();
  addresses_.clear();
  const bool found = for_each_run(tile_, [&](const TileRun& run) {
    FoundRun here{nullptr, run.offset, run.bytes};
    if (run.inside) {
      here.global = lane_bytes(warp_, op_, lane_, Space::global, run.address, run.bytes, 1, "tensor copy");
      if (!here.global) return false;
    }
    runs_.push_back(here);
    if (watched) addresses_.push_back(run.address);
    return true;
  });
  warp_.block->take_fuel(bytes_ / bytes_like_an_instruction + runs_.size() / warp_size);
  has_runs_ = found;
  return found;
}

bool Issue::find_barrier(const CopyTarget& target) {
  if (!copy().has_barrier) return true;
  if (copy().to_cluster && !is_in_same_block(warp_, op_, lane_, target)) return false;
  barrier_ = lane_bytes(warp_, op_, lane_, shared_space_, target.barrier, 8, 8, "mbarrier operation");
  return barrier_ && (copy().report == DataReport::none || takes_reports(warp_, op_, lane_, barrier_));
}

bool Issue::watch(const CopyTarget& target) {
  const bool loads = copy().kind == TransferKind::load;
  uint64_t addresses[warp_size];
  const uint32_t mask = std::exchange(warp_.mask, 1u << lane_);
  const auto access = [&](Space space, uint64_t address, uint64_t bytes, AccessKind kind) {
    std::fill_n(addresses, warp_size, address);
    return watch_access(warp_, op_, space, addresses, bytes, kind);
  };
  const AccessKind global_kind = loads                                 ? AccessKind::load
                                 : copy().kind == TransferKind::reduce ? AccessKind::atomic
                                                                       : AccessKind::store;
  bool good = loads || access(shared_space_, target.to, bytes_, AccessKind::load);
  for (size_t i = 0; good && i < runs_.size(); ++i)
    good = !runs_[i].global || access(Space::global, addresses_[i], runs_[i].bytes, global_kind);
  if (loads) good = good && access(shared_space_, target.to, bytes_, AccessKind::store);
  warp_.mask = mask;
  // A thread that finds the barrier's phase over sees the copy, because its bytes are counted after they are moved.
  if (good && barrier_ && warp_.block->checker) warp_.block->checker->release(warp_, shared_space_, target.barrier);
  return good;
}

bool Issue::start() {
  Block& block = *warp_.block;
  const auto bytes = static_cast<uint32_t>(tile_.counted_bytes());
  if (block.late_copies) {
    std::string wrong =
        block.late_copies->add(CopyKind::bulk, warp_.index * warp_size + lane_,
                               std::make_unique<LateTransfer>(transfer_, runs_), bytes, runs_.size(), barrier_);
    return wrong.empty() || fail(std::move(wrong));
  }
  const bool report = reports(transfer_, runs_);
  carry_out(transfer_, runs_);
  if (!barrier_) return true;
  std::string wrong = complete_copy(barrier_, bytes, report);
  return wrong.empty() || fail(std::move(wrong));
}

const MicroOp* copy_tensor(Warp& warp, const MicroOp& op) {
  return for_each_lane(warp, op, [&](unsigned lane) { return Issue(warp, op, lane).run(); });
}

// A prefetch has no visible effect; it only reads the map.
const MicroOp* prefetch_tensor(Warp& warp, const MicroOp& op) {
  const TensorOperands operands(warp, op);
  return for_each_lane(warp, op, [&](unsigned lane) {
    ir::TensorMap map;
    return read_tensor_map_at(warp, op, lane, operands.address(operands.copy().map, lane), map);
  });
}

// --- decoding ---

bool is_multicast(const ir::Form& form) {
  using enum ir::Modifier;
  return form.has(multicast_cluster) || form.has(multicast_cluster_16b) || form.has(multicast_cluster_32b);
}

unsigned rank_of(const ir::Form& form) {
  constexpr ir::Modifier words[] = {ir::Modifier::_1d, ir::Modifier::_2d, ir::Modifier::_3d, ir::Modifier::_4d,
                                    ir::Modifier::_5d};
  for (unsigned i = 0; i < std::size(words); ++i)
    if (form.has(words[i])) return i + 1;
  return 0;
}

TileShape shape_of(const ir::Form& form) {
  if (form.has(ir::Modifier::tile_gather4) || form.has(ir::Modifier::tile_scatter4)) return TileShape::four_rows;
  if (form.has(ir::Modifier::im2col) || form.has(ir::Modifier::im2col_no_offs)) return TileShape::column;
  if (form.has(ir::Modifier::im2col_w) || form.has(ir::Modifier::im2col_no_offs_w)) return TileShape::row;
  if (form.has(ir::Modifier::im2col_w_128)) return TileShape::row_of_128;
  return TileShape::box;
}

// Decodes the overrides of fields of the map.
void decode_overrides(Decoder& decoder, const MapOperand& map, TensorCopy& copy) {
  if (map.new_address) copy.address = decoder.source(*map.new_address, lanes_of_bits(64));
  for (const ir::Operand& size : map.sizes)
    copy.sizes.push_back(decoder.source(size, lanes_of_bits(32)));
  for (const ir::Operand& stride : map.low_strides)
    copy.low_strides.push_back(decoder.source(stride, lanes_of_bits(32)));
  if (map.high_strides) copy.high_strides = decoder.source(*map.high_strides, lanes_of_bits(32));
}

// Decodes the im2col offsets, or halo and offset. Returns false after reporting to the decoder.
bool decode_offsets(Decoder& decoder, unsigned top_level, TensorCopy& copy, std::vector<LaneRef>& list) {
  const std::vector<ir::Operand> offsets = matrix_registers(decoder, top_level);
  copy.offsets = copy.shape == TileShape::column ? copy.rank - 2 : 2;
  if (offsets.size() != copy.offsets) {
    decoder.unsupported("a tensor copy with too few im2col offsets");
    return false;
  }
  for (const ir::Operand& offset : offsets)
    list.push_back(decoder.source(offset, lanes_of_bits(16)));
  return true;
}

} // namespace

void decode_tensor_copy(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const bool prefetches = form.has(ir::Modifier::prefetch);
  TensorCopy copy;
  copy.shape = shape_of(form);
  copy.rank = rank_of(form);
  copy.coordinates = copy.shape == TileShape::four_rows ? 5 : copy.rank;
  copy.report = report_of(form);
  const bool loads = !form.has(ir::Modifier::bulk_group);
  if (!loads) copy.kind = form.has(ir::Modifier::reduce) ? TransferKind::reduce : TransferKind::store;
  if (copy.kind == TransferKind::reduce) {
    const std::optional<ReduceOperation> operation = reduce_operation_of(form);
    if (!operation) return decoder.unsupported("a reduction that is not emulated");
    copy.reduction = *operation;
    decoder.order_sensitive();
  }
  const unsigned map_index = prefetches || !loads ? 0 : 1;
  const std::optional<MapOperand> map = decode_map_operand(decoder, map_index);
  if (!map) return;
  if (map->coordinates.size() != copy.coordinates) return decoder.unsupported("a tensor copy with too few coordinates");
  copy.map = map->address;
  std::vector<LaneRef> list;
  for (const ir::Operand& coordinate : map->coordinates)
    list.push_back(decoder.source(coordinate, lanes_of_bits(32)));
  decode_overrides(decoder, *map, copy);
  if (!prefetches) copy.shared = address_source(decoder, loads ? 0 : 1);
  copy.has_barrier = loads && !prefetches;
  if (copy.has_barrier) copy.barrier = address_source(decoder, 2);
  const bool has_offsets = loads && copy.shape != TileShape::box && copy.shape != TileShape::four_rows;
  if (has_offsets && !decode_offsets(decoder, prefetches ? 1 : 3, copy, list)) return;
  copy.to_cluster = loads && form.space == ir::StateSpace::shared_cluster;
  copy.of_pair = form.has(ir::Modifier::cta_group_2);
  copy.multicast = loads && !prefetches && is_multicast(form);
  if (copy.multicast) { // after the mbarrier or the offsets
    const size_t mask = decoder.top_level(has_offsets ? 4 : 3);
    if (mask >= decoder.operands().size()) return decoder.unsupported("a tensor copy with too few im2col offsets");
    list.push_back(decoder.source(decoder.operands()[mask], lanes_of_bits(32)));
  }
  const uint32_t registers = decoder.add_list(list);
  const uint32_t description = add_description(decoder, copy);
  MicroOp& op = decoder.emit(prefetches ? &prefetch_tensor : &copy_tensor);
  op.extra = registers;
  op.auxiliary = description;
}

} // namespace ptxrewrite::emulator
