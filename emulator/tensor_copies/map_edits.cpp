// tensormap.replace, tensormap.cp_fenceproxy and fence.proxy.tensormap (PTX ISA 9.7.9.28, 9.7.13.16, 9.7.13.4): kernels
// that build tensor maps themselves, in shared or global memory.
#include "emulator/core/check.h"
#include "emulator/core/watch.h"
#include "emulator/tensor_copies/map_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr size_t most_changed = 4096; // maps that --check keeps track of

enum class MapField : uint8_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  swizzle_atomicity,
  fill_mode,
};

constexpr std::pair<ir::Modifier, MapField> field_words[] = {
    {ir::Modifier::global_address, MapField::global_address},
    {ir::Modifier::rank, MapField::rank},
    {ir::Modifier::box_dim, MapField::box_dim},
    {ir::Modifier::global_dim, MapField::global_dim},
    {ir::Modifier::global_stride, MapField::global_stride},
    {ir::Modifier::element_stride, MapField::element_stride},
    {ir::Modifier::elemtype, MapField::elemtype},
    {ir::Modifier::interleave_layout, MapField::interleave_layout},
    {ir::Modifier::swizzle_mode, MapField::swizzle_mode},
    {ir::Modifier::swizzle_atomicity, MapField::swizzle_atomicity},
    {ir::Modifier::fill_mode, MapField::fill_mode},
};

// Sets an enumeration with `count` values. Returns false if the value is not one of them.
template <class Enumeration> bool set(Enumeration& field, uint64_t value, unsigned count) {
  field = static_cast<Enumeration>(value);
  return value < count;
}

// Returns false if no map can have the value.
bool replace(ir::TensorMap& map, MapField field, unsigned ordinal, uint64_t value) {
  const auto small = static_cast<uint32_t>(value);
  switch (field) {
  case MapField::global_address:
    map.address = value;
    return true;
  case MapField::rank: // counted from zero
    map.rank = small + 1;
    return small < ir::most_tensor_dimensions;
  case MapField::box_dim:
    map.box[ordinal] = small;
    return true;
  case MapField::global_dim:
    map.dims[ordinal] = small;
    return true;
  case MapField::global_stride: // of dimension 1 and following
    if (ordinal + 1 == ir::most_tensor_dimensions) return false;
    map.strides[ordinal + 1] = value;
    return true;
  case MapField::element_stride:
    map.element_strides[ordinal] = small;
    return true;
  case MapField::elemtype:
    return set(map.element, value, ir::tensor_element_count);
  case MapField::interleave_layout:
    return set(map.interleave, value, 3);
  case MapField::swizzle_mode:
    return set(map.swizzle, value, 5);
  case MapField::swizzle_atomicity:
    return set(map.atom, value, 4);
  case MapField::fill_mode:
    return set(map.fill, value, 2);
  }
  return false;
}

bool watch_bytes(Warp& warp, const MicroOp& op, unsigned lane, Space space, uint64_t address, AccessKind kind) {
  if (!warp.block->watch_memory) return true;
  uint64_t addresses[warp_size];
  std::fill_n(addresses, warp_size, address);
  const uint32_t mask = std::exchange(warp.mask, 1u << lane);
  const bool good = watch_access(warp, op, space, addresses, ir::tensor_map_bytes, kind);
  warp.mask = mask;
  return good;
}

// --check: copies by the map need a fence from now on.
void note_change(Block& block, uint64_t address) {
  if (!block.checker) return;
  std::vector<uint64_t>& changed = block.checker->changed_tensor_maps();
  if (std::ranges::find(changed, address) == changed.end() && changed.size() < most_changed) changed.push_back(address);
}

// op.source: address, new value. op.extra: the field. op.auxiliary: its ordinal. op.count: bytes of the value.
const MicroOp* replace_field(Warp& warp, const MicroOp& op) {
  const auto space = static_cast<Space>(op.flags & 0xff);
  return for_each_lane(warp, op, [&](unsigned lane) {
    const uint64_t address = lane_address(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, lane);
    const uint64_t value =
        op.count == 8 ? warp.lanes<uint64_t>(op.source[1])[lane] : warp.lanes<uint32_t>(op.source[1])[lane];
    const Space found = space == Space::generic ? split_generic(address).space : space;
    if (found != Space::global && found != Space::shared) {
      warp.block->fail(warp, op, lane, fmt::format("a tensor map in {} memory cannot be changed", name_of(found)));
      return false;
    }
    std::byte* bytes =
        lane_bytes(warp, op, lane, space, address, ir::tensor_map_bytes, ir::tensor_map_alignment, "tensor map");
    if (!bytes) return false;
    ir::TensorMap map;
    std::string wrong =
        read_tensor_map(std::span<const std::byte, ir::tensor_map_bytes>(bytes, ir::tensor_map_bytes), map);
    if (wrong.empty() && !replace(map, static_cast<MapField>(op.extra), op.auxiliary, value))
      wrong = fmt::format("no map has {} there", value);
    if (!wrong.empty()) {
      warp.block->fail(warp, op, lane, fmt::format("tensor map at {:#x}: {}", address, wrong));
      return false;
    }
    if (!watch_bytes(warp, op, lane, space, address, AccessKind::store)) return false;
    const TensorMapObject changed = encode_tensor_map(map);
    std::memcpy(bytes, changed.data(), changed.size());
    if (found == Space::global) note_change(*warp.block, address);
    return true;
  });
}

// op.source: destination in global memory, source in shared memory. op.immediate: their offsets.
const MicroOp* copy_map(Warp& warp, const MicroOp& op) {
  const auto offsets = std::bit_cast<CopyOffsets>(op.immediate);
  const MicroOp* next = for_each_lane(warp, op, [&](unsigned lane) {
    const uint64_t to = lane_address(warp, op.source[0], op.flags & flag_narrow_first, offsets.to, lane);
    const uint64_t from = lane_address(warp, op.source[1], op.flags & flag_narrow_second, offsets.from, lane);
    const auto bytes_at = [&](Space space, uint64_t address) {
      return lane_bytes(warp, op, lane, space, address, ir::tensor_map_bytes, ir::tensor_map_alignment, "tensor map");
    };
    const std::byte* source = bytes_at(Space::shared, from);
    std::byte* destination = source ? bytes_at(Space::global, to) : nullptr;
    if (!destination) return false;
    if (lane != static_cast<unsigned>(std::countr_zero(warp.mask))) return true; // one copy for all lanes
    if (!watch_bytes(warp, op, lane, Space::shared, from, AccessKind::load) ||
        !watch_bytes(warp, op, lane, Space::global, to, AccessKind::store))
      return false;
    std::memmove(destination, source, ir::tensor_map_bytes);
    note_change(*warp.block, to);
    return true;
  });
  if (next && warp.block->checker) warp.block->checker->fence(warp);
  return next;
}

// fence.proxy.tensormap::generic.acquire: later copies see earlier writes to the map.
const MicroOp* fence_map(Warp& warp, const MicroOp& op) {
  MemoryChecker* checker = warp.block->checker.get();
  if (!checker) return &op + 1;
  checker->fence(warp);
  return for_each_lane(warp, op, [&](unsigned lane) {
    const uint64_t address = lane_address(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, lane);
    std::erase(checker->changed_tensor_maps(), address);
    return true;
  });
}

void decode_map_fence(Decoder& decoder, ir::InstructionId) {
  const AddressSource address = address_source(decoder, 0);
  MicroOp& op = decoder.emit(&fence_map);
  op.flags = address.narrow ? flag_narrow_first : 0;
  op.source[0] = address.base;
  op.immediate = address.offset;
}

void decode_cp_fenceproxy(Decoder& decoder) {
  const AddressSource to = address_source(decoder, 0), from = address_source(decoder, 1);
  const CopyOffsets offsets{static_cast<int32_t>(to.offset), static_cast<int32_t>(from.offset)};
  if (offsets.to != to.offset || offsets.from != from.offset)
    return decoder.unsupported("an offset of more than 32 bits");
  MicroOp& op = decoder.emit(&copy_map);
  op.flags = (to.narrow ? flag_narrow_first : 0) | (from.narrow ? flag_narrow_second : 0);
  op.source[0] = to.base;
  op.source[1] = from.base;
  op.immediate = std::bit_cast<int64_t>(offsets);
}

void decode_map_edit(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  if (form.has(ir::Modifier::cp_fenceproxy)) return decode_cp_fenceproxy(decoder);
  for (ir::Modifier word : {ir::Modifier::alloc_large, ir::Modifier::alloc_same, ir::Modifier::alloc_small})
    if (form.has(word)) return decoder.unsupported("tensor maps with classes of allocations are not emulated");
  const auto* row = std::ranges::find_if(field_words, [&](const auto& field) { return form.has(field.first); });
  if (!form.has(ir::Modifier::replace) || row == std::end(field_words))
    return decoder.unsupported(fmt::format("'{}' is not emulated", form.mnemonic));
  const std::span<const ir::Operand> operands = decoder.operands();
  const MapField field = row->second;
  const bool has_ordinal = decoder.top_level_count() == 3;
  const unsigned bits = field == MapField::global_address || field == MapField::global_stride ? 64 : 32;
  const AddressSource address = address_source(decoder, 0);
  const uint64_t ordinal = has_ordinal ? static_cast<uint64_t>(operands[decoder.top_level(1)].immediate) : 0;
  if (ordinal >= ir::most_tensor_dimensions) return decoder.unsupported("a tensor map with more than 5 dimensions");
  const LaneRef value = decoder.source(operands[decoder.top_level(has_ordinal ? 2 : 1)], lanes_of_bits(bits));
  MicroOp& op = decoder.emit(&replace_field);
  op.flags = static_cast<uint32_t>(decode_space(form.space)) | (address.narrow ? flag_narrow_first : 0);
  op.source[0] = address.base;
  op.source[1] = value;
  op.count = static_cast<uint8_t>(bits / 8);
  op.extra = static_cast<uint32_t>(field);
  op.auxiliary = static_cast<uint32_t>(ordinal);
  op.immediate = address.offset;
}

} // namespace

void add_tensor_copy_operations(OperationTable& table) {
  table.special("cp.tensor*", &decode_tensor_copy);
  table.special("cp.reduce*", &decode_bulk_reduction);
  table.special("tensormap*", &decode_map_edit);
  table.special("fence.tensormap::generic.acquire*", &decode_map_fence);
}

} // namespace ptxrewrite::emulator
