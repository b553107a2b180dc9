// atom and red: read, compute and write in one step (PTX ISA 9.7.13.5 and 9.7.13.6). The lanes of a warp are
// processed one after another, lowest first. Global memory is updated with atomic instructions of the host if several
// host threads run blocks of the kernel; orders and scopes are at least as strong as requested.
#include "emulator/access/warp_access.h"
#include "emulator/core/decode.h"
#include "emulator/core/watch.h"
#include "emulator/semantics/accumulate.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>

namespace ptxrewrite::emulator {
namespace {

using semantics::BFloat16;
using semantics::Float16;
using semantics::Pair;

constexpr unsigned maximum_elements = 8;
// MicroOp::flags: the space, and
constexpr uint32_t flag_narrow = 1u << 8; // addresses have 32 bits

// --- what is done to one element ---

// `apply` computes the new value. `folds`: several operands may be combined before they are applied.
struct Add {
  static constexpr bool folds = true;
  template <class T> static T apply(T old, T b, T, Space) { return static_cast<T>(old + b); }
};
struct And {
  static constexpr bool folds = true;
  template <class T> static T apply(T old, T b, T, Space) { return static_cast<T>(old & b); }
};
struct Or {
  static constexpr bool folds = true;
  template <class T> static T apply(T old, T b, T, Space) { return static_cast<T>(old | b); }
};
struct Xor {
  static constexpr bool folds = true;
  template <class T> static T apply(T old, T b, T, Space) { return static_cast<T>(old ^ b); }
};
struct Min {
  static constexpr bool folds = true;
  template <class T> static T apply(T old, T b, T, Space) { return b < old ? b : old; }
};
struct Max {
  static constexpr bool folds = true;
  template <class T> static T apply(T old, T b, T, Space) { return old < b ? b : old; }
};
struct Increment {
  static constexpr bool folds = false;
  template <class T> static T apply(T old, T b, T, Space) { return old >= b ? 0 : old + 1; }
};
struct Decrement {
  static constexpr bool folds = false;
  template <class T> static T apply(T old, T b, T, Space) { return old == 0 || old > b ? b : old - 1; }
};
struct Exchange {
  static constexpr bool folds = false;
  template <class T> static T apply(T, T b, T, Space) { return b; }
};
struct CompareAndSwap {
  static constexpr bool folds = false;
  template <class T> static T apply(T old, T b, T c, Space) { return std::memcmp(&old, &b, sizeof b) == 0 ? c : old; }
};

struct AddFloat {
  static constexpr bool folds = false;
  static float apply(float old, float b, float, Space space) {
    return space == Space::global ? semantics::atomic_add_global(old, b) : semantics::atomic_add_shared(old, b);
  }
  template <class T> static T apply(T old, T b, T, Space) { return semantics::atomic_add(old, b); }
};
// .noftz
struct AddFloatKept {
  static constexpr bool folds = false;
  static float apply(float old, float b, float, Space) { return semantics::atomic_add_shared(old, b); }
};
template <bool max> struct MinMaxFloat {
  static constexpr bool folds = false;
  template <class T> static T apply(T old, T b, T, Space) { return semantics::atomic_min_max<max>(old, b); }
  template <class T> static Pair<T> apply(Pair<T> old, Pair<T> b, Pair<T>, Space) {
    return semantics::on_pair<&semantics::atomic_min_max<max, T>>(old, b);
  }
};

template <unsigned bytes> struct UnsignedOf;
template <> struct UnsignedOf<2> { using Type = uint16_t; };
template <> struct UnsignedOf<4> { using Type = uint32_t; };
template <> struct UnsignedOf<8> { using Type = uint64_t; };

// Atomic 16-byte instructions are not available on every host.
std::mutex& wide_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Returns the old value.
template <class T, class Operation> T update(std::byte* host, T b, T c, Space space, bool concurrent) {
  auto plain = [&] {
    const T old = read_raw<T>(host);
    const T now = Operation::apply(old, b, c, space);
    std::memcpy(host, &now, sizeof now);
    return old;
  };
  if (!concurrent || space != Space::global) return plain();
  if constexpr (sizeof(T) == 16) {
    std::lock_guard lock(wide_mutex());
    return plain();
  } else {
    using Raw = typename UnsignedOf<sizeof(T)>::Type;
    std::atomic_ref<Raw> place(*reinterpret_cast<Raw*>(host));
    if constexpr (std::is_same_v<Operation, Add>)
      return static_cast<T>(place.fetch_add(static_cast<Raw>(b), std::memory_order_acq_rel));
    Raw seen = place.load(std::memory_order_relaxed);
    for (;;) {
      const T old = std::bit_cast<T>(seen);
      const T now = Operation::apply(old, b, c, space);
      if (place.compare_exchange_weak(seen, std::bit_cast<Raw>(now), std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
        return old;
    }
  }
}

// --- the instruction ---

// op.source: base address, b, c. For vectors: lists of b, then of d. op.destination[0] is invalid for red.
struct Elements {
  std::array<LaneRef, maximum_elements> b, d;
};

Elements elements_of(const Warp& warp, const MicroOp& op) {
  Elements elements;
  if (op.count == 1) {
    elements.b[0] = op.source[1];
    elements.d[0] = op.destination[0];
    return elements;
  }
  const LaneRef* list = warp.activation->function->lists.data() + op.extra;
  for (unsigned i = 0; i < op.count; ++i) {
    elements.b[i] = list[i];
    if (op.destination[0]) elements.d[i] = list[op.count + i];
  }
  return elements;
}

template <class T, class Operation>
void update_lane(Warp& warp, const MicroOp& op, const Elements& elements, std::byte* host, unsigned lane, Space space) {
  const bool concurrent = warp.block->launch->concurrent;
  std::array<T, maximum_elements> old;
  const T c = op.source[2] ? warp.lanes<T>(op.source[2])[lane] : T{};
  for (unsigned i = 0; i < op.count; ++i)
    old[i] = update<T, Operation>(host + i * sizeof(T), warp.lanes<T>(elements.b[i])[lane], c, space, concurrent);
  if (!op.destination[0]) return;
  for (unsigned i = 0; i < op.count; ++i)
    warp.lanes<T>(elements.d[i])[lane] = old[i];
}

// If all lanes use one address and no old value is needed, a single access is enough.
template <class T, class Operation> void update_once(Warp& warp, const MicroOp& op, std::byte* host, Space space) {
  const T* values = warp.lanes<T>(op.source[1]);
  T total = values[std::countr_zero(warp.mask)];
  for (uint32_t lanes = warp.mask & (warp.mask - 1); lanes; lanes &= lanes - 1)
    total = Operation::apply(total, values[std::countr_zero(lanes)], T{}, space);
  update<T, Operation>(host, total, T{}, space, warp.block->launch->concurrent);
}

template <class T, class Operation> const MicroOp* atomic_operation(Warp& warp, const MicroOp& op) {
  const uint64_t size = sizeof(T) * op.count;
  WarpAccess access;
  access.space = static_cast<Space>(op.flags & 0xff);
  if (op.flags & flag_narrow)
    gather_addresses<uint32_t>(warp, op, size, access);
  else
    gather_addresses<uint64_t>(warp, op, size, access);
  locate(warp, op, size, access);
  if (access.space == Space::constant || access.space == Space::parameter) [[unlikely]]
    return warp.block->fail(warp, op, access.first,
                            fmt::format("atomic operation on {} memory", name_of(access.space)));
  if (warp.block->watch_memory) [[unlikely]]
    if (!watch_access(warp, op, access.space, access.addresses, size, AccessKind::atomic)) return nullptr;
  if (access.space == Space::local) access.bias = 0; // every lane has its own local memory
  const bool fast = access.bias && all_aligned(access, size);
  if constexpr (Operation::folds)
    if (fast && access.pattern == Pattern::same && !op.destination[0]) {
      update_once<T, Operation>(warp, op, access.host(access.first), access.space);
      return &op + 1;
    }
  const Elements elements = elements_of(warp, op);
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    Space space = access.space;
    std::byte* host = access.host(lane);
    if (!fast) {
      host = lane_bytes(warp, op, access, lane, size, "atomic operation");
      if (!host) return nullptr;
      if (space == Space::generic) space = split_generic(access.addresses[lane]).space;
    }
    update_lane<T, Operation>(warp, op, elements, host, lane, space);
  }
  return &op + 1;
}

// --- decoding ---

template <class T> Handler integer_handler(const ir::Form& form) {
  if (form.has(ir::Modifier::add)) return &atomic_operation<T, Add>;
  if (form.has(ir::Modifier::min)) return &atomic_operation<T, Min>;
  if (form.has(ir::Modifier::max)) return &atomic_operation<T, Max>;
  return nullptr;
}

template <class T> Handler bits_handler(const ir::Form& form) {
  if (form.has(ir::Modifier::exch)) return &atomic_operation<T, Exchange>;
  if (form.has(ir::Modifier::cas)) return &atomic_operation<T, CompareAndSwap>;
  if constexpr (std::is_integral_v<T>) {
    if (form.has(ir::Modifier::and_)) return &atomic_operation<T, And>;
    if (form.has(ir::Modifier::or_)) return &atomic_operation<T, Or>;
    if (form.has(ir::Modifier::xor_)) return &atomic_operation<T, Xor>;
  }
  return nullptr;
}

template <class T> Handler half_handler(const ir::Form& form) {
  if (form.has(ir::Modifier::add)) return &atomic_operation<T, AddFloat>;
  if (form.has(ir::Modifier::min)) return &atomic_operation<T, MinMaxFloat<false>>;
  if (form.has(ir::Modifier::max)) return &atomic_operation<T, MinMaxFloat<true>>;
  return nullptr;
}

Handler handler_of(const ir::Form& form) {
  switch (form.type()) {
  case ir::ScalarType::u32:
    if (form.has(ir::Modifier::inc)) return &atomic_operation<uint32_t, Increment>;
    if (form.has(ir::Modifier::dec)) return &atomic_operation<uint32_t, Decrement>;
    return integer_handler<uint32_t>(form);
  case ir::ScalarType::s32:
    // Additions wrap; signed overflow is undefined in C++, so they are done unsigned.
    return form.has(ir::Modifier::add) ? integer_handler<uint32_t>(form) : integer_handler<int32_t>(form);
  case ir::ScalarType::u64:
    return integer_handler<uint64_t>(form);
  case ir::ScalarType::s64:
    return form.has(ir::Modifier::add) ? integer_handler<uint64_t>(form) : integer_handler<int64_t>(form);
  case ir::ScalarType::b16:
    return bits_handler<uint16_t>(form);
  case ir::ScalarType::b32:
    return bits_handler<uint32_t>(form);
  case ir::ScalarType::b64:
    return bits_handler<uint64_t>(form);
  case ir::ScalarType::b128:
    return bits_handler<Bits128>(form);
  case ir::ScalarType::f32:
    if (form.has(ir::Modifier::noftz)) return &atomic_operation<float, AddFloatKept>;
    return &atomic_operation<float, AddFloat>;
  case ir::ScalarType::f64:
    return &atomic_operation<double, AddFloat>;
  case ir::ScalarType::f16:
    return half_handler<Float16>(form);
  case ir::ScalarType::bf16:
    return half_handler<BFloat16>(form);
  case ir::ScalarType::f16x2:
    return half_handler<Pair<Float16>>(form);
  case ir::ScalarType::bf16x2:
    return half_handler<Pair<BFloat16>>(form);
  default:
    return nullptr;
  }
}

LaneType value_type(ir::ScalarType type) {
  const auto bits = static_cast<uint8_t>(lane_bits(type));
  const bool floating = type == ir::ScalarType::f32 || type == ir::ScalarType::f64;
  return {floating ? LaneKind::floating : LaneKind::unsigned_integer, bits};
}

std::vector<ir::Operand> elements_at(std::span<const ir::Operand> operands, size_t position) {
  if (!operands[position].is(ir::OperandKind::vector)) return {operands[position]};
  const auto inside = operands.subspan(position + 1, operands[position].group_size());
  return {inside.begin(), inside.end()};
}

// May the result depend on the order of the blocks? Integer reductions of one kind commute, so only their old values
// depend on the order.
bool shows_order(Decoder& decoder, std::span<const ir::Operand> results) {
  const ir::Form& form = decoder.form();
  const ir::ScalarType type = form.type();
  for (const ir::Operand& result : results)
    if (result.is(ir::OperandKind::value) && decoder.is_read(result.as_value())) return true;
  if (form.has(ir::Modifier::add) && value_type(type).kind == LaneKind::floating) return true;
  for (ir::ScalarType half : {ir::ScalarType::f16, ir::ScalarType::f16x2, ir::ScalarType::bf16, ir::ScalarType::bf16x2})
    if (form.has(ir::Modifier::add) && type == half) return true;
  for (ir::Modifier word : {ir::Modifier::exch, ir::Modifier::cas, ir::Modifier::inc, ir::Modifier::dec})
    if (form.has(word)) return true;
  // Reductions of different kinds on one word do not commute.
  constexpr ir::Modifier kinds[] = {ir::Modifier::add,  ir::Modifier::min, ir::Modifier::max,
                                    ir::Modifier::and_, ir::Modifier::or_, ir::Modifier::xor_};
  for (unsigned i = 0; i < std::size(kinds); ++i)
    if (form.has(kinds[i])) decoder.image().reduction_kinds |= 1u << (2 * i + (ir::is_signed(type) ? 1 : 0));
  // Signed and unsigned addition give the same bits.
  uint32_t seen = decoder.image().reduction_kinds;
  if (seen & 2) seen = (seen & ~2u) | 1u;
  return std::popcount(seen) > 1;
}

void decode_atomic(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  Handler handler = handler_of(form);
  if (!handler) return decoder.unsupported(fmt::format("'{}' is not emulated", form.mnemonic));
  const bool returns = form.opcode == ir::Opcode::atom;
  const unsigned first = returns ? 1 : 0;
  const LaneType type = value_type(form.type());
  Decoder::Address address = decoder.address(decoder.top_level(first), true);
  if (address.constant) {
    address.base = decoder.constant(0, 64);
    address.narrow = false;
  }
  const std::vector<ir::Operand> values = elements_at(operands, decoder.top_level(first + 1));
  std::vector<ir::Operand> results;
  if (returns && !operands[0].is(ir::OperandKind::sink)) results = elements_at(operands, 0);
  if (values.size() > maximum_elements) return decoder.unsupported("an atomic operation on that many elements");
  const Space space = decode_space(form.space);
  if ((space == Space::global || space == Space::generic) && shows_order(decoder, results)) decoder.order_sensitive();

  std::vector<LaneRef> lanes;
  for (const ir::Operand& value : values)
    lanes.push_back(decoder.source(value, type));
  for (const ir::Operand& result : results)
    lanes.push_back(decoder.destination(result, type));
  LaneRef swap;
  if (form.has(ir::Modifier::cas)) swap = decoder.source(operands[decoder.top_level(first + 2)], type);
  const uint32_t list = values.size() > 1 ? decoder.add_list(lanes) : 0;
  MicroOp& op = decoder.emit(handler);
  op.flags = static_cast<uint32_t>(space) | (address.narrow ? flag_narrow : 0);
  op.count = static_cast<uint8_t>(values.size());
  op.immediate = address.offset;
  op.auxiliary = decoder.image().memory_operations++;
  op.source[0] = address.base;
  op.source[1] = lanes[0];
  op.source[2] = swap;
  if (!results.empty()) op.destination[0] = lanes[values.size()];
  op.extra = list;
}

} // namespace

void add_atomic_operations(OperationTable& table) {
  table.special("atom*", &decode_atomic);
  table.special("red*", &decode_atomic);
}

} // namespace ptxrewrite::emulator
