// suld, sust and sured: reading, writing and reducing elements of surfaces by coordinates (PTX ISA 9.7.11). In .b forms
// the first coordinate counts bytes, in .p forms samples: texels, or elements of a reduction.
#include "emulator/core/lanes.h"
#include "emulator/semantics/half.h"
#include "emulator/special/texture_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

namespace ptxrewrite::emulator {
namespace {

enum class Outside : uint32_t { trap, clamp, zero };

// MicroOp::flags: Outside, and
constexpr uint32_t flag_layered = 1u << 8;
// op.count: dimensions. The list: coordinates, op.auxiliary of them, then op.immediate registers of elements.

struct SurfacePlace {
  std::byte* bytes = nullptr; // nullptr: outside, or the block has failed
  bool failed = false;
  const BoundTexture* surface = nullptr; // the surface that contains `bytes`
};

// `sample_bytes`: unit of the first coordinate; 0: texels of the surface.
SurfacePlace place_of(Warp& warp, const MicroOp& op, TextureLookup& lookup, unsigned lane, uint64_t bytes,
                      uint64_t sample_bytes = 1) {
  const BoundTexture* surface = lookup.find(lane);
  if (!surface) return {nullptr, true};
  const TextureBinding& binding = *surface->binding;
  if (sample_bytes == 0) bytes = sample_bytes = binding.texel_bytes();
  const LaneRef* list = warp.activation->function->lists.data() + op.extra;
  unsigned next = 0;
  uint64_t layer = 0;
  if (op.flags & flag_layered) layer = warp.lanes<uint32_t>(list[next++])[lane];
  int64_t index[3] = {};
  for (unsigned d = 0; d < op.count; ++d)
    index[d] = warp.lanes<int32_t>(list[next++])[lane];
  index[0] *= static_cast<int64_t>(sample_bytes);
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

// Converts a 32-bit component to a component of a sample: a number of the sample's kind, saturated, as OpenCL's
// write_image does (PTX ISA 9.7.11.2: "converted"; OpenCL C 6.13.14.4).
uint32_t formatted(const TextureBinding& binding, uint32_t given) {
  const unsigned bits = binding.channel_bits;
  const uint64_t unsigned_limit = (uint64_t(1) << bits) - 1;
  const auto signed_limit = static_cast<int64_t>(unsigned_limit >> 1);
  const double number = static_cast<double>(std::bit_cast<float>(given));
  switch (binding.kind) {
  case TexelKind::floating:
    return bits == 16 ? semantics::to_half<semantics::Float16>(std::bit_cast<float>(given)).bits : given;
  case TexelKind::unsigned_integer:
    if (!binding.normalised_float) return static_cast<uint32_t>(std::min<uint64_t>(given, unsigned_limit));
    if (!(number > 0)) return 0; // also for NaN
    return static_cast<uint32_t>(std::nearbyint(std::min(number, 1.0) * static_cast<double>(unsigned_limit)));
  case TexelKind::signed_integer:
    if (!binding.normalised_float)
      return static_cast<uint32_t>(std::clamp<int64_t>(static_cast<int32_t>(given), -signed_limit - 1, signed_limit));
    if (std::isnan(number)) return 0;
    return static_cast<uint32_t>(
        static_cast<int64_t>(std::nearbyint(std::clamp(number, -1.0, 1.0) * static_cast<double>(signed_limit))));
  }
  return given;
}

// sust.p: components that the sample lacks are dropped, components that are not given become zero.
const MicroOp* store_samples(Warp& warp, const MicroOp& op) {
  TextureLookup lookup(warp, op);
  TexelAccesses accesses(warp, op);
  const LaneRef* elements = elements_of(warp, op);
  const auto count = static_cast<unsigned>(op.immediate);
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const SurfacePlace place = place_of(warp, op, lookup, lane, 0, 0);
    if (place.failed) return nullptr;
    if (!place.bytes) continue;
    const TextureBinding& binding = *place.surface->binding;
    accesses.add(lane, *place.surface, place.bytes, binding.texel_bytes());
    for (unsigned i = 0; i < binding.channels; ++i) {
      const uint32_t value = i < count ? formatted(binding, warp.lanes<uint32_t>(elements[i])[lane]) : 0;
      std::memcpy(place.bytes + i * binding.channel_bits / 8, &value, binding.channel_bits / 8);
    }
  }
  accesses.tell(AccessKind::store);
  return &op + 1;
}

enum class Reduction : uint8_t { add, min, max, and_, or_ };

template <Reduction reduction, class T> void reduce(std::byte* bytes, uint64_t operand) {
  T old;
  std::memcpy(&old, bytes, sizeof old);
  const T b = static_cast<T>(operand);
  const T now =
      reduction == Reduction::add
          ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b))
      : reduction == Reduction::min  ? std::min(old, b)
      : reduction == Reduction::max  ? std::max(old, b)
      : reduction == Reduction::and_ ? static_cast<T>(old & b)
                                     : static_cast<T>(old | b);
  std::memcpy(bytes, &now, sizeof now);
}

// Blocks run one after another if a kernel has one of these (Decoder::order_sensitive), so no atomicity is needed. The
// signedness comes from the surface for samples, from the instruction (T) for bytes.
template <Reduction reduction, class T, bool samples> const MicroOp* reduce_surface(Warp& warp, const MicroOp& op) {
  TextureLookup lookup(warp, op);
  TexelAccesses accesses(warp, op);
  const T* values = warp.lanes<T>(elements_of(warp, op)[0]);
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const SurfacePlace place = place_of(warp, op, lookup, lane, sizeof(T), samples ? sizeof(T) : 1);
    if (place.failed) return nullptr;
    if (!place.bytes) continue;
    accesses.add(lane, *place.surface, place.bytes, sizeof(T));
    const auto operand = static_cast<uint64_t>(values[lane]);
    if (samples && place.surface->binding->kind == TexelKind::signed_integer)
      reduce<reduction, std::make_signed_t<T>>(place.bytes, operand);
    else
      reduce<reduction, T>(place.bytes, operand);
  }
  accesses.tell(AccessKind::atomic);
  return &op + 1;
}

// --- decoding ---

template <class T, bool samples> Handler reduction_handler(const ir::Form& form) {
  if (form.has(ir::Modifier::add)) return &reduce_surface<Reduction::add, T, samples>;
  if (form.has(ir::Modifier::min)) return &reduce_surface<Reduction::min, T, samples>;
  if (form.has(ir::Modifier::max)) return &reduce_surface<Reduction::max, T, samples>;
  return form.has(ir::Modifier::and_) ? &reduce_surface<Reduction::and_, T, samples>
                                      : &reduce_surface<Reduction::or_, T, samples>;
}

Handler handler_of(const ir::Form& form) {
  const unsigned bits = ir::bit_width(form.type());
  const bool is_signed = ir::is_signed(form.type());
  if (form.opcode == ir::Opcode::sured) {
    if (form.has(ir::Modifier::p))
      return bits == 64 ? reduction_handler<uint64_t, true>(form) : reduction_handler<uint32_t, true>(form);
    if (bits == 64)
      return is_signed ? reduction_handler<int64_t, false>(form) : reduction_handler<uint64_t, false>(form);
    return is_signed ? reduction_handler<int32_t, false>(form) : reduction_handler<uint32_t, false>(form);
  }
  if (form.has(ir::Modifier::p)) return &store_samples;
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
  if (!geometry || geometry->cube)
    return decoder.unsupported("a surface of another geometry than .1d to .3d, .a1d and .a2d");
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
