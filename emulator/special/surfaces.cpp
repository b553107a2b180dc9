// suld.b, sust.b and sured.b: reading, writing and reducing elements of surfaces by coordinates, the first of which
// counts bytes (PTX ISA 9.7.11).
#include "emulator/core/lanes.h"
#include "emulator/special/texture_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

enum class Outside : uint32_t { trap, clamp, zero };

// MicroOp::flags: Outside, and
constexpr uint32_t flag_layered = 1u << 8;
// op.count: dimensions. The list: coordinates, op.auxiliary of them, then op.immediate registers of elements.

struct SurfacePlace {
  std::byte* bytes = nullptr; // null: outside, or the block has failed
  bool failed = false;
  const BoundTexture* surface = nullptr; // of bytes
};

SurfacePlace place_of(Warp& warp, const MicroOp& op, TextureLookup& lookup, unsigned lane, uint64_t bytes) {
  const BoundTexture* surface = lookup.find(lane);
  if (!surface) return {nullptr, true};
  const TextureBinding& binding = *surface->binding;
  const LaneRef* list = warp.activation->function->lists.data() + op.extra;
  unsigned next = 0;
  uint64_t layer = 0;
  if (op.flags & flag_layered) layer = warp.lanes<uint32_t>(list[next++])[lane];
  int64_t index[3] = {};
  for (unsigned d = 0; d < op.count; ++d)
    index[d] = warp.lanes<int32_t>(list[next++])[lane];
  const auto row_bytes = static_cast<int64_t>(binding.width * binding.texel_bytes());
  const int64_t limits[3] = {row_bytes - static_cast<int64_t>(bytes), static_cast<int64_t>(binding.rows()) - 1,
                             static_cast<int64_t>(binding.planes()) - 1};
  bool inside = layer < binding.planes();
  for (unsigned d = 0; d < op.count; ++d)
    inside = inside && index[d] >= 0 && index[d] <= limits[d];
  const auto outside = static_cast<Outside>(op.flags & 0xff);
  if (index[0] % static_cast<int64_t>(bytes) != 0 || (!inside && outside == Outside::trap)) {
    warp.block->fail(warp, op, lane,
                     fmt::format("surface access of {} bytes at ({}, {}, {}), layer {}, of a surface of {} bytes by {} "
                                 "by {}",
                                 bytes, index[0], index[1], index[2], layer, row_bytes, binding.rows(),
                                 binding.planes()));
    return {nullptr, true};
  }
  if (!inside && outside == Outside::zero) return {};
  if (limits[0] < 0) return {};
  for (unsigned d = 0; d < op.count; ++d)
    index[d] = std::clamp<int64_t>(index[d], 0, limits[d]);
  layer = std::min<uint64_t>(layer, binding.planes() - 1);
  const uint64_t plane = op.count == 3 ? static_cast<uint64_t>(index[2]) : layer;
  return {surface->at(0, static_cast<uint64_t>(index[1]), plane) + index[0], false, surface};
}

const LaneRef* elements_of(const Warp& warp, const MicroOp& op) {
  return warp.activation->function->lists.data() + op.extra + op.auxiliary;
}

template <class T> const MicroOp* load_surface(Warp& warp, const MicroOp& op) {
  TextureLookup lookup(warp, op);
  TexelAccesses accesses(warp, op);
  const LaneRef* elements = elements_of(warp, op);
  const auto count = static_cast<unsigned>(op.immediate);
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const SurfacePlace place = place_of(warp, op, lookup, lane, sizeof(T) * count);
    if (place.failed) return nullptr;
    if (place.bytes) accesses.add(lane, *place.surface, place.bytes, sizeof(T) * count);
    for (unsigned i = 0; i < count; ++i) {
      T value{};
      if (place.bytes) std::memcpy(&value, place.bytes + i * sizeof(T), sizeof value);
      warp.lanes<T>(elements[i])[lane] = value;
    }
  }
  accesses.tell(AccessKind::load);
  return &op + 1;
}

template <class T> const MicroOp* store_surface(Warp& warp, const MicroOp& op) {
  TextureLookup lookup(warp, op);
  TexelAccesses accesses(warp, op);
  const LaneRef* elements = elements_of(warp, op);
  const auto count = static_cast<unsigned>(op.immediate);
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const SurfacePlace place = place_of(warp, op, lookup, lane, sizeof(T) * count);
    if (place.failed) return nullptr;
    if (place.bytes) accesses.add(lane, *place.surface, place.bytes, sizeof(T) * count);
    for (unsigned i = 0; i < count && place.bytes; ++i)
      std::memcpy(place.bytes + i * sizeof(T), warp.lanes<T>(elements[i]) + lane, sizeof(T));
  }
  accesses.tell(AccessKind::store);
  return &op + 1;
}

enum class Reduction : uint8_t { add, min, max, and_, or_ };

// Blocks take turns when a kernel has one of these (Decoder::order_sensitive), so nothing else need be atomic.
template <Reduction reduction, class T> const MicroOp* reduce_surface(Warp& warp, const MicroOp& op) {
  TextureLookup lookup(warp, op);
  TexelAccesses accesses(warp, op);
  const T* values = warp.lanes<T>(elements_of(warp, op)[0]);
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const SurfacePlace place = place_of(warp, op, lookup, lane, sizeof(T));
    if (place.failed) return nullptr;
    if (!place.bytes) continue;
    accesses.add(lane, *place.surface, place.bytes, sizeof(T));
    T old;
    std::memcpy(&old, place.bytes, sizeof old);
    const T b = values[lane];
    const T now =
        reduction == Reduction::add
            ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b))
        : reduction == Reduction::min  ? std::min(old, b)
        : reduction == Reduction::max  ? std::max(old, b)
        : reduction == Reduction::and_ ? static_cast<T>(old & b)
                                       : static_cast<T>(old | b);
    std::memcpy(place.bytes, &now, sizeof now);
  }
  accesses.tell(AccessKind::atomic);
  return &op + 1;
}

// --- decoding ---

template <class T> Handler reduction_handler(const ir::Form& form) {
  if (form.has(ir::Modifier::add)) return &reduce_surface<Reduction::add, T>;
  if (form.has(ir::Modifier::min)) return &reduce_surface<Reduction::min, T>;
  if (form.has(ir::Modifier::max)) return &reduce_surface<Reduction::max, T>;
  return form.has(ir::Modifier::and_) ? &reduce_surface<Reduction::and_, T> : &reduce_surface<Reduction::or_, T>;
}

Handler handler_of(const ir::Form& form) {
  const unsigned bits = ir::bit_width(form.type());
  const bool is_signed = ir::is_signed(form.type());
  if (form.opcode == ir::Opcode::sured) {
    if (bits == 64) return is_signed ? reduction_handler<int64_t>(form) : reduction_handler<uint64_t>(form);
    return is_signed ? reduction_handler<int32_t>(form) : reduction_handler<uint32_t>(form);
  }
  const bool loads = form.opcode == ir::Opcode::suld;
  switch (bits) {
  case 8:
    return loads ? &load_surface<uint8_t> : &store_surface<uint8_t>;
  case 16:
    return loads ? &load_surface<uint16_t> : &store_surface<uint16_t>;
  case 32:
    return loads ? &load_surface<uint32_t> : &store_surface<uint32_t>;
  default:
    return loads ? &load_surface<uint64_t> : &store_surface<uint64_t>;
  }
}

void decode_surface(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  const std::optional<Geometry> geometry = geometry_of(form);
  if (!geometry || form.has(ir::Modifier::p)) return decoder.unsupported("formatted surface accesses are not emulated");
  const bool loads = form.opcode == ir::Opcode::suld;
  if (form.opcode == ir::Opcode::sured) decoder.order_sensitive();
  TextureOperand surface = texture_operand(decoder, loads ? 1 : 0);
  if (surface.coordinates.size() < geometry->dimensions + (geometry->layered ? 1 : 0))
    return decoder.unsupported("a surface instruction with too few coordinates");
  const auto coordinates = static_cast<uint32_t>(surface.coordinates.size());
  const size_t position = decoder.top_level(loads ? 0 : 1);
  const bool is_vector = operands[position].is(ir::OperandKind::vector);
  const size_t first = is_vector ? position + 1 : position, past = ir::next_sibling(operands, position);
  const LaneType type = lanes_of_bits(lane_bits(form.type()));
  for (size_t i = first; i < past; i = ir::next_sibling(operands, i))
    surface.coordinates.push_back(loads ? decoder.destination(operands[i], type) : decoder.source(operands[i], type));
  const auto elements = static_cast<int64_t>(surface.coordinates.size() - coordinates);
  const Outside outside = form.has(ir::Modifier::clamp)  ? Outside::clamp
                          : form.has(ir::Modifier::zero) ? Outside::zero
                                                         : Outside::trap;
  const uint32_t list = decoder.add_list(surface.coordinates);
  MicroOp& op = decoder.emit(handler_of(form));
  op.source[0] = surface.handle;
  op.flags = static_cast<uint32_t>(outside) | (geometry->layered ? flag_layered : 0);
  op.count = static_cast<uint8_t>(geometry->dimensions);
  op.extra = list;
  op.auxiliary = coordinates;
  op.immediate = elements;
}

} // namespace

void add_surface_operations(OperationTable& table) {
  table.special("suld*", &decode_surface);
  table.special("sust*", &decode_surface);
  table.special("sured*", &decode_surface);
}

} // namespace ptxrewrite::emulator
