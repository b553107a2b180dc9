// Loads and stores of all state spaces, one warp at a time.
//
// Every access is checked against the allocation that contains it. If the lanes' addresses have the same distances as
// at the previous execution of the instruction, one comparison detects this, and bounds are checked only at the ends of
// the pattern (address_pattern.h).
#include "emulator/access/access_run.h"
#include "emulator/access/address_pattern.h"
#include "emulator/core/decode.h"
#include "emulator/core/watch.h"
#include "emulator/special/known_handlers.h"

#include <fmt/format.h>

#include <set>

namespace ptxrewrite::emulator {
namespace {

template <unsigned bytes> struct RawOf;
template <> struct RawOf<1> { using Type = uint8_t; };
template <> struct RawOf<2> { using Type = uint16_t; };
template <> struct RawOf<4> { using Type = uint32_t; };
template <> struct RawOf<8> { using Type = uint64_t; };
template <> struct RawOf<16> { using Type = Bits128; };

constexpr Space space_of(const MicroOp& op) {
  return static_cast<Space>(op.flags & 0xff);
}

inline LaneRef element(const Warp& warp, const MicroOp& op, unsigned index, LaneRef single) {
  return op.count == 1 ? single : warp.activation->function->lists[op.extra + index];
}

inline std::span<const LaneRef> stored_values(const Warp& warp, const MicroOp& op) {
  if (op.count == 1) return {&op.source[1], 1};
  return std::span(warp.activation->function->lists).subspan(op.extra, op.count);
}

// Longer vectors use the slow path.
constexpr unsigned most_elements = 4;

// Returns the lane arrays of a vector's elements.
template <class Raw> std::array<Raw*, most_elements> element_arrays(const Warp& warp, const MicroOp& op) {
  std::array<Raw*, most_elements> arrays;
  const LaneRef* list = warp.activation->function->lists.data() + op.extra;
  for (unsigned i = 0; i < op.count; ++i)
    arrays[i] = warp.lanes<Raw>(list[i]);
  return arrays;
}

template <class Raw>
[[gnu::noinline]] const MicroOp* load_known_vectors(Warp& warp, const MicroOp& op, const KnownAccess& access) {
  const auto targets = element_arrays<Raw>(warp, op);
  if (op.count == 2)
    load_vectors<2>(access, targets.data());
  else
    load_vectors<4>(access, targets.data());
  return &op + 1;
}

template <class Raw>
[[gnu::noinline]] const MicroOp* store_known_vectors(Warp& warp, const MicroOp& op, const KnownAccess& access) {
  const auto sources = element_arrays<const Raw>(warp, op);
  if (op.count == 2)
    store_vectors<2>(access, sources.data());
  else
    store_vectors<4>(access, sources.data());
  return &op + 1;
}

// Loads without a known address pattern.
template <unsigned bytes, class Base> [[gnu::noinline]] const MicroOp* load_unknown(Warp& warp, const MicroOp& op) {
  using Raw = typename RawOf<bytes>::Type;
  const uint64_t size = uint64_t(bytes) * op.count;
  WarpAccess access;
  access.space = space_of(op);
  // A constant size spares the common case vector multiplications.
  if (op.count == 1)
    gather_addresses<Base>(warp, op, bytes, access);
  else
    gather_addresses<Base>(warp, op, size, access);
  locate(warp, op, size, access);
  if (warp.block->watch_memory) [[unlikely]]
    if (!watch_access(warp, op, access.space, access.addresses, size, AccessKind::load)) return nullptr;
  const bool aligned = all_aligned(access, size);
  if (access.bias && access.space == Space::local) step_to_own_local(warp, access, aligned);
  if (access.bias && aligned) [[likely]] {
    if (op.count <= most_elements) remember_pattern(warp, op, size, access);
    const std::byte* start = access.host(access.first);
    for (unsigned i = 0; i < op.count; ++i) {
      Raw* target = warp.lanes<Raw>(element(warp, op, i, op.destination[0]));
      if (op.count == 1 && warp.mask == full_mask && access.pattern == Pattern::neighbours) {
        std::memcpy(target, start, warp_size * bytes);
      } else if (access.pattern == Pattern::same) {
        const Raw value = read_raw<Raw>(start + i * bytes);
        detail::write_lanes<Raw>(warp, element(warp, op, i, op.destination[0]), warp.mask,
                                 [&](unsigned) { return value; });
      } else if (warp.mask == full_mask) {
#pragma GCC unroll 8
        for (unsigned lane = 0; lane < warp_size; ++lane)
          target[lane] = read_raw<Raw>(access.host(lane) + i * bytes);
      } else {
        for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
          const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
          target[lane] = read_raw<Raw>(access.host(lane) + i * bytes);
        }
      }
    }
    return &op + 1;
  }
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const std::byte* host = lane_bytes(warp, op, access, lane, size, "load");
    if (!host) return nullptr;
    for (unsigned i = 0; i < op.count; ++i)
      warp.lanes<Raw>(element(warp, op, i, op.destination[0]))[lane] = read_raw<Raw>(host + i * bytes);
  }
  return &op + 1;
}

template <unsigned bytes, class Base> const MicroOp* load(Warp& warp, const MicroOp& op) {
  using Raw = typename RawOf<bytes>::Type;
  AccessSite& site = warp.block->sites[op.auxiliary];
  if (op.count == 1) [[likely]] {
    std::byte* first = repeated_access<Base>(warp, op, space_of(op), bytes, site);
    if (!first) [[unlikely]]
      return load_unknown<bytes, Base>(warp, op);
    if constexpr (sizeof(Base) == 8) // shared memory has narrow addresses
      if (site.pattern->kind == LanePattern::consecutive) prefetch_behind(first, warp_size * bytes);
    load_single({*site.pattern, first}, warp.lanes<Raw>(op.destination[0]));
    return &op + 1;
  }
  std::byte* first = repeated_access<Base>(warp, op, space_of(op), uint64_t(bytes) * op.count, site);
  return first ? load_known_vectors<Raw>(warp, op, {*site.pattern, first}) : load_unknown<bytes, Base>(warp, op);
}

template <unsigned bytes, class Base> [[gnu::noinline]] const MicroOp* store_unknown(Warp& warp, const MicroOp& op) {
  using Raw = typename RawOf<bytes>::Type;
  const uint64_t size = uint64_t(bytes) * op.count;
  WarpAccess access;
  access.space = space_of(op);
  // A constant size spares the common case vector multiplications.
  if (op.count == 1)
    gather_addresses<Base>(warp, op, bytes, access);
  else
    gather_addresses<Base>(warp, op, size, access);
  locate(warp, op, size, access);
  if (access.space == Space::constant || access.space == Space::parameter) [[unlikely]]
    return warp.block->fail(warp, op, access.first, std::string("store to ") + name_of(access.space) + " memory");
  if (warp.block->watch_memory) [[unlikely]]
    if (!watch_access(warp, op, access.space, access.addresses, size, AccessKind::store, stored_values(warp, op)))
      return nullptr;
  const bool aligned = all_aligned(access, size);
  if (access.bias && access.space == Space::local) step_to_own_local(warp, access, aligned);
  if (access.bias && aligned) [[likely]] {
    if (op.count <= most_elements) remember_pattern(warp, op, size, access);
    if (warp.mask == full_mask && access.pattern == Pattern::neighbours && op.count == 1) {
      std::memcpy(access.host(0), warp.lanes<Raw>(op.source[1]), warp_size * bytes);
      return &op + 1;
    }
    for (unsigned i = 0; i < op.count; ++i) {
      const Raw* values = warp.lanes<Raw>(element(warp, op, i, op.source[1]));
      for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
        std::memcpy(access.host(lane) + i * bytes, values + lane, bytes);
      }
    }
    return &op + 1;
  }
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    std::byte* host = lane_bytes(warp, op, access, lane, size, "store");
    if (!host) return nullptr;
    for (unsigned i = 0; i < op.count; ++i)
      std::memcpy(host + i * bytes, warp.lanes<Raw>(element(warp, op, i, op.source[1])) + lane, bytes);
  }
  return &op + 1;
}

template <unsigned bytes, class Base> const MicroOp* store(Warp& warp, const MicroOp& op) {
  using Raw = typename RawOf<bytes>::Type;
  AccessSite& site = warp.block->sites[op.auxiliary];
  if (op.count == 1) [[likely]] {
    std::byte* first = repeated_access<Base>(warp, op, space_of(op), bytes, site);
    if (!first) [[unlikely]]
      return store_unknown<bytes, Base>(warp, op);
    store_single({*site.pattern, first}, warp.lanes<Raw>(op.source[1]));
    return &op + 1;
  }
  std::byte* first = repeated_access<Base>(warp, op, space_of(op), uint64_t(bytes) * op.count, site);
  return first ? store_known_vectors<Raw>(warp, op, {*site.pattern, first}) : store_unknown<bytes, Base>(warp, op);
}

// The first access of a run.
template <unsigned bytes, class Base> const MicroOp* load_leading(Warp& warp, const MicroOp& op) {
  const MicroOp* next = run_accesses(warp, op);
  return next ? next : load<bytes, Base>(warp, op);
}
template <unsigned bytes, class Base> const MicroOp* store_leading(Warp& warp, const MicroOp& op) {
  const MicroOp* next = run_accesses(warp, op);
  return next ? next : store<bytes, Base>(warp, op);
}

// All lanes load from the same static address: parameters, and variables by name.
template <unsigned bytes> const MicroOp* load_fixed(Warp& warp, const MicroOp& op) {
  using Raw = typename RawOf<bytes>::Type;
  const uint64_t size = uint64_t(bytes) * op.count;
  const auto address = static_cast<uint64_t>(op.immediate);
  const Space space = space_of(op);
  const auto first = static_cast<unsigned>(std::countr_zero(warp.mask));
  if (warp.block->watch_memory && space != Space::parameter) [[unlikely]] {
    uint64_t addresses[warp_size];
    std::fill_n(addresses, warp_size, address);
    if (!watch_access(warp, op, space, addresses, size, AccessKind::load)) return nullptr;
  }
  const std::byte* host = resolve(*warp.block, warp, first, space, address, size);
  if (!host || (address & (size - 1)) != 0) return bad_access(warp, op, first, space, address, size, "load");
  for (unsigned i = 0; i < op.count; ++i) {
    const Raw value = read_raw<Raw>(host + i * bytes);
    detail::write_lanes<Raw>(warp, element(warp, op, i, op.destination[0]), warp.mask, [&](unsigned) { return value; });
  }
  return &op + 1;
}

// Fails for an access outside the .param variable op.extra of the function, which the assembler accepts: at byte
// op.immediate, op.auxiliary bytes.
template <AccessKind kind> const MicroOp* access_outside_slot(Warp& warp, const MicroOp& op) {
  const DecodedFunction& function = *warp.activation->function;
  return warp.block->fail(
      warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)),
      fmt::format("{} of {} bytes at byte {} of call parameter '{}', which has {} bytes",
                  kind == AccessKind::load ? "load" : "store", op.auxiliary, op.immediate,
                  function.source->module().text(function.source->variables[ir::VariableId(op.extra)].name),
                  function.slots.at(op.extra).size));
}

// Calls body(bytes per lane) for a .param variable, with a constant for variables of up to 16 bytes.
template <class Body> [[gnu::always_inline]] inline void with_slot_stride(const MicroOp& op, Body&& body) {
  if (op.auxiliary == 16)
    body(std::integral_constant<size_t, 16>());
  else
    body(size_t(op.auxiliary));
}

// Loads from a .param variable of the activation: op.immediate = offset of lane 0, op.auxiliary = bytes per lane.
template <unsigned bytes> const MicroOp* load_slot(Warp& warp, const MicroOp& op) {
  using Raw = typename RawOf<bytes>::Type;
  const std::byte* start = warp.activation->registers + op.immediate;
  for (unsigned i = 0; i < op.count; ++i)
    with_slot_stride(op, [&](auto stride) {
      detail::write_lanes<Raw>(warp, element(warp, op, i, op.destination[0]), warp.mask,
                               [&](unsigned lane) { return read_raw<Raw>(start + lane * stride + i * bytes); });
    });
  return &op + 1;
}

template <unsigned bytes> const MicroOp* store_slot(Warp& warp, const MicroOp& op) {
  using Raw = typename RawOf<bytes>::Type;
  std::byte* start = warp.activation->registers + op.immediate;
  for (unsigned i = 0; i < op.count; ++i) {
    const Raw* values = warp.lanes<Raw>(element(warp, op, i, op.source[1]));
    with_slot_stride(op, [&](auto stride) {
      if (warp.mask == full_mask) {
#pragma GCC unroll 8
        for (unsigned lane = 0; lane < warp_size; ++lane)
          std::memcpy(start + lane * stride + i * bytes, values + lane, bytes);
        return;
      }
      for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
        std::memcpy(start + lane * stride + i * bytes, values + lane, bytes);
      }
    });
  }
  return &op + 1;
}

#define BY_SIZE(name)                                                                                                  \
  Handler name##_of(unsigned bytes) {                                                                                  \
    switch (bytes) {                                                                                                   \
    case 1:                                                                                                            \
      return &name<1>;                                                                                                 \
    case 2:                                                                                                            \
      return &name<2>;                                                                                                 \
    case 4:                                                                                                            \
      return &name<4>;                                                                                                 \
    case 8:                                                                                                            \
      return &name<8>;                                                                                                 \
    default:                                                                                                           \
      return &name<16>;                                                                                                \
    }                                                                                                                  \
  }
BY_SIZE(load_fixed)
BY_SIZE(load_slot)
BY_SIZE(store_slot)
#undef BY_SIZE

#define BY_SIZE_AND_BASE(name)                                                                                         \
  Handler name##_of(unsigned bytes, bool narrow_base) {                                                                \
    switch (bytes) {                                                                                                   \
    case 1:                                                                                                            \
      return narrow_base ? &name<1, uint32_t> : &name<1, uint64_t>;                                                    \
    case 2:                                                                                                            \
      return narrow_base ? &name<2, uint32_t> : &name<2, uint64_t>;                                                    \
    case 4:                                                                                                            \
      return narrow_base ? &name<4, uint32_t> : &name<4, uint64_t>;                                                    \
    case 8:                                                                                                            \
      return narrow_base ? &name<8, uint32_t> : &name<8, uint64_t>;                                                    \
    default:                                                                                                           \
      return narrow_base ? &name<16, uint32_t> : &name<16, uint64_t>;                                                  \
    }                                                                                                                  \
  }
BY_SIZE_AND_BASE(load)
BY_SIZE_AND_BASE(store)
BY_SIZE_AND_BASE(load_leading)
BY_SIZE_AND_BASE(store_leading)
#undef BY_SIZE_AND_BASE

// --- decoding ---

LaneType element_type(ir::ScalarType type) {
  return {ir::is_signed(type) ? LaneKind::signed_integer : LaneKind::unsigned_integer,
          static_cast<uint8_t>(std::max(lane_bits(type), 8u))};
}

// Returns the registers of an operand that is a register or a vector.
std::vector<size_t> elements_of(std::span<const ir::Operand> operands, size_t position) {
  std::vector<size_t> elements;
  if (!operands[position].is(ir::OperandKind::vector)) return {position};
  const size_t past = ir::next_sibling(operands, position);
  for (size_t i = position + 1; i < past; i = ir::next_sibling(operands, i))
    elements.push_back(i);
  return elements;
}

// Strong loads and stores in global memory synchronise blocks: results may depend on the blocks' order.
void note_order(Decoder& decoder, Space space) {
  if ((space == Space::global || space == Space::generic) &&
      (decoder.form().effects.atomic || decoder.form().effects.volatile_result ||
       decoder.form().has(ir::Modifier::async)))
    decoder.order_sensitive();
}

struct Place {
  Decoder::Address address;
  Space space = Space::global;
  const ParameterSlot* slot = nullptr;
};

Place place_of(Decoder& decoder, size_t position) {
  Place place;
  const ir::Form& form = decoder.form();
  place.space = decode_space(form.space);
  place.address = decoder.address(position, true);
  if (place.space != Space::parameter) return place;
  if (place.address.is_symbol) place.slot = decoder.slot(place.address.symbol);
  if (place.slot) decoder.takes_more_than_sources();
  // Parameters of a device function that are accessed by address are in local memory.
  const bool by_address =
      !place.address.is_symbol && !decoder.function().is_entry && form.space != ir::StateSpace::param_entry;
  if (by_address || (place.slot && place.slot->in_local)) {
    place.space = Space::local;
    place.slot = nullptr;
  }
  return place;
}

// Emits a fault in place of an access that is not inside the call parameter it names; returns false if there is none.
bool emit_outside_slot(Decoder& decoder, const Place& place, uint64_t bytes, AccessKind kind) {
  if (!place.slot || contains(0, place.slot->size, static_cast<uint64_t>(place.address.offset), bytes)) return false;
  MicroOp& op = decoder.emit(kind == AccessKind::load ? &access_outside_slot<AccessKind::load>
                                                      : &access_outside_slot<AccessKind::store>);
  op.immediate = place.address.offset;
  op.auxiliary = static_cast<uint32_t>(bytes);
  op.extra = place.address.symbol.variable().index();
  return true;
}

void set_place(Decoder& decoder, MicroOp& op, const Place& place, size_t count) {
  op.flags = static_cast<uint32_t>(place.space);
  op.count = static_cast<uint8_t>(count);
  op.immediate = place.address.offset;
  if (place.slot) {
    op.immediate += place.slot->offset;
    op.auxiliary = place.slot->stride;
  } else {
    op.auxiliary = decoder.image().memory_operations++;
  }
}

void decode_load(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const LaneType type = element_type(decoder.form().type());
  Place place = place_of(decoder, decoder.top_level(1));
  note_order(decoder, place.space);
  std::vector<LaneRef> targets;
  for (size_t position : elements_of(operands, 0))
    targets.push_back(decoder.destination(operands[position], type));
  if (place.address.constant && place.space == Space::local) {
    place.address.base = decoder.constant(0, 64); // each lane has its own local memory
    place.address.narrow = false;
    place.address.constant = false;
  }
  const unsigned bytes = type.bits / 8;
  if (emit_outside_slot(decoder, place, bytes * targets.size(), AccessKind::load)) return;
  Handler handler = place.slot               ? load_slot_of(bytes)
                    : place.address.constant ? load_fixed_of(bytes)
                                             : load_of(bytes, place.address.narrow);
  const uint32_t list = targets.size() > 1 ? decoder.add_list(targets) : 0;
  MicroOp& op = decoder.emit(handler);
  set_place(decoder, op, place, targets.size());
  op.source[0] = place.address.base;
  op.destination[0] = targets[0];
  op.extra = list;
}

void decode_store(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const LaneType type = element_type(decoder.form().type());
  Place place = place_of(decoder, 0);
  note_order(decoder, place.space);
  std::vector<LaneRef> values;
  for (size_t position : elements_of(operands, decoder.top_level(1)))
    values.push_back(decoder.source(operands[position], type));
  if (place.address.constant) place.address.base = decoder.constant(0, 64);
  const unsigned bytes = type.bits / 8;
  if (emit_outside_slot(decoder, place, bytes * values.size(), AccessKind::store)) return;
  const uint32_t list = values.size() > 1 ? decoder.add_list(values) : 0;
  MicroOp& op = decoder.emit(place.slot ? store_slot_of(bytes) : store_of(bytes, place.address.narrow));
  set_place(decoder, op, place, values.size());
  op.source[0] = place.address.base;
  op.source[1] = values[0];
  op.extra = list;
}

} // namespace

std::optional<MemoryHandler> memory_handler(Handler handler) {
  for (const unsigned bytes : {1u, 2u, 4u, 8u, 16u}) {
    for (const bool narrow : {false, true}) {
      if (handler == load_of(bytes, narrow) || handler == load_leading_of(bytes, narrow))
        return MemoryHandler{MemoryHandler::load, bytes, narrow};
      if (handler == store_of(bytes, narrow) || handler == store_leading_of(bytes, narrow))
        return MemoryHandler{MemoryHandler::store, bytes, narrow};
    }
    if (handler == load_fixed_of(bytes)) return MemoryHandler{MemoryHandler::fixed_load, bytes, false};
    if (handler == load_slot_of(bytes)) return MemoryHandler{MemoryHandler::slot_load, bytes, false};
    if (handler == store_slot_of(bytes)) return MemoryHandler{MemoryHandler::slot_store, bytes, false};
  }
  return std::nullopt;
}

void join_accesses(DecodedFunction& function) {
  const auto describe = [](const MicroOp& op) -> RunnableOp {
    static const std::set<Handler> lane_handlers = [] {
      std::set<Handler> handlers;
      for (const Operation& operation : OperationTable::get().rows())
        if (operation.handler) handlers.insert(operation.handler);
      return handlers;
    }();
    if (lane_handlers.contains(op.handler)) return {.kind = RunnableOp::plain};
    const auto memory = op.count == 1 ? memory_handler(op.handler) : std::nullopt;
    if (!memory || (memory->kind != MemoryHandler::load && memory->kind != MemoryHandler::store)) return {};
    return {RunnableOp::access, memory->kind == MemoryHandler::store, memory->narrow_base,
            static_cast<uint8_t>(memory->bytes)};
  };
  lead_runs(function, describe, [](const RunnableOp& leader) {
    return leader.stores ? store_leading_of(leader.bytes, leader.narrow_base)
                         : load_leading_of(leader.bytes, leader.narrow_base);
  });
}

Space decode_space(ir::StateSpace space) {
  switch (space) {
  case ir::StateSpace::global:
    return Space::global;
  case ir::StateSpace::local:
    return Space::local;
  case ir::StateSpace::constant:
    return Space::constant;
  case ir::StateSpace::shared:
  case ir::StateSpace::shared_cta:
    return Space::shared;
  case ir::StateSpace::shared_cluster:
    return Space::cluster;
  case ir::StateSpace::param:
  case ir::StateSpace::param_entry:
  case ir::StateSpace::param_func:
    return Space::parameter;
  default:
    return Space::generic;
  }
}

void add_memory_operations(OperationTable& table) {
  table.special("ld*", &decode_load);
  table.special("ldu*", &decode_load);
  table.special("st*", &decode_store);
}

} // namespace ptxrewrite::emulator
