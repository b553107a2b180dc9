// st.async and red.async that count their bytes at an mbarrier (PTX ISA 9.7.9.12 and 9.7.13.7): stores and reductions
// in the shared memory of another block, without a result. They are performed when they are issued, with late_copies,
// too; a kernel that waits at the mbarrier observes no difference.
#include "emulator/cluster/operations.h"
#include "emulator/core/check.h"
#include "emulator/core/watch.h"
#include "emulator/memory/mbarrier_word.h"
#include "emulator/special/async_access.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

enum class Reduction : uint8_t { none, add, min, max, inc, dec, and_, or_, xor_ }; // none: a store

template <class T> T reduced(Reduction kind, T old, T b) {
  switch (kind) {
  case Reduction::none:
    return b;
  case Reduction::add:
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
  case Reduction::min:
    return std::min(old, b);
  case Reduction::max:
    return std::max(old, b);
  case Reduction::inc:
    return old >= b ? 0 : old + 1;
  case Reduction::dec:
    return old == 0 || old > b ? b : old - 1;
  case Reduction::and_:
    return old & b;
  case Reduction::or_:
    return old | b;
  case Reduction::xor_:
    return old ^ b;
  }
  return b;
}

// MicroOp::flags: a Space, the widths of the addresses (async_access.h), and from this bit on a Reduction.
constexpr unsigned reduction_shift = 16;

// Both addresses are shared::cluster, or generic.
CopyTarget target_of(const Warp& warp, const MicroOp& op, unsigned lane) {
  const auto offsets = std::bit_cast<CopyOffsets>(op.immediate);
  CopyTarget target{lane_address(warp, op.source[0], op.flags & flag_narrow_first, offsets.to, lane),
                    lane_address(warp, op.source[1], op.flags & flag_narrow_second, offsets.from, lane)};
  return target;
}

bool lies_right(Warp& warp, const MicroOp& op, unsigned lane, Space space, CopyTarget target) {
  if (space == Space::generic) target = {split_generic(target.to).address, split_generic(target.barrier).address};
  return space == Space::shared || is_in_same_block(warp, op, lane, target);
}

// op.source: destination, mbarrier; the op.count values are in the list at op.extra. op.immediate: the
// offsets.
template <class T> const MicroOp* store_async(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  const auto space = static_cast<Space>(op.flags & 0xff);
  const auto kind = static_cast<Reduction>(op.flags >> reduction_shift);
  const uint64_t bytes = sizeof(T) * op.count;
  const LaneRef* values = warp.activation->function->lists.data() + op.extra;
  if (block.watch_memory) {
    uint64_t addresses[warp_size];
    all_addresses(warp, op.source[0], op.flags & flag_narrow_first, std::bit_cast<CopyOffsets>(op.immediate).to,
                  addresses);
    if (!watch_access(warp, op, space, addresses, bytes,
                      kind == Reduction::none ? AccessKind::store : AccessKind::atomic,
                      kind == Reduction::none ? std::span(values, op.count) : std::span<const LaneRef>()))
      return nullptr;
  }
  return for_each_lane(warp, op, [&](unsigned lane) {
    const CopyTarget target = target_of(warp, op, lane);
    std::byte* to = lane_bytes(warp, op, lane, space, target.to, bytes, bytes, "asynchronous store");
    if (!to || !lies_right(warp, op, lane, space, target)) return false;
    std::byte* barrier = lane_bytes(warp, op, lane, space, target.barrier, 8, 8, "mbarrier operation");
    if (!barrier) return false;
    for (unsigned i = 0; i < op.count; ++i) {
      T old;
      std::memcpy(&old, to + i * sizeof(T), sizeof old);
      T now = warp.lanes<T>(values[i])[lane];
      if constexpr (std::is_integral_v<T>) now = reduced(kind, old, now);
      std::memcpy(to + i * sizeof(T), &now, sizeof now);
    }
    if (block.checker) block.checker->release(warp, space, target.barrier);
    std::string wrong =
        change_barrier(barrier, [&](BarrierWord& word) { return complete_bytes(word, static_cast<int64_t>(bytes)); });
    if (wrong.empty()) return true;
    block.fail(warp, op, lane, std::move(wrong));
    return false;
  });
}

Reduction reduction_of(const ir::Form& form) {
  constexpr std::pair<ir::Modifier, Reduction> kinds[] = {
      {ir::Modifier::add, Reduction::add}, {ir::Modifier::min, Reduction::min},  {ir::Modifier::max, Reduction::max},
      {ir::Modifier::inc, Reduction::inc}, {ir::Modifier::dec, Reduction::dec},  {ir::Modifier::and_, Reduction::and_},
      {ir::Modifier::or_, Reduction::or_}, {ir::Modifier::xor_, Reduction::xor_}};
  for (const auto& [word, kind] : kinds)
    if (form.has(word)) return kind;
  return Reduction::none;
}

Handler handler_of(const ir::Form& form, Reduction kind) {
  const bool is_signed = ir::is_signed(form.type()) && (kind == Reduction::min || kind == Reduction::max);
  switch (ir::bit_width(form.type())) {
  case 32:
    return is_signed ? &store_async<int32_t> : &store_async<uint32_t>;
  case 64:
    return is_signed ? &store_async<int64_t> : &store_async<uint64_t>;
  case 128:
    return kind == Reduction::none ? &store_async<Bits128> : nullptr;
  default:
    return nullptr;
  }
}

void decode_async_store(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  const Reduction kind = form.opcode == ir::Opcode::red ? reduction_of(form) : Reduction::none;
  const Handler handler = handler_of(form, kind);
  if (!handler) return decoder.unsupported("asynchronous stores of this type are not emulated");
  const AddressSource to = address_source(decoder, 0), barrier = address_source(decoder, 2);
  using Limits = std::numeric_limits<int32_t>;
  for (int64_t offset : {to.offset, barrier.offset})
    if (offset < Limits::min() || offset > Limits::max()) return decoder.unsupported("an offset of more than 32 bits");
  const size_t position = decoder.top_level(1);
  const LaneType type = lanes_of_bits(ir::bit_width(form.type()));
  std::vector<LaneRef> values;
  if (operands[position].is(ir::OperandKind::vector))
    for (const ir::Operand& element : operands.subspan(position + 1, operands[position].group_size()))
      values.push_back(decoder.source(element, type));
  else
    values.push_back(decoder.source(operands[position], type));
  const uint32_t list = decoder.add_list(values);
  MicroOp& op = decoder.emit(handler);
  op.flags = static_cast<uint32_t>(decode_space(form.space)) | (to.narrow ? flag_narrow_first : 0) |
             (barrier.narrow ? flag_narrow_second : 0) | static_cast<uint32_t>(kind) << reduction_shift;
  op.count = static_cast<uint8_t>(values.size());
  op.source[0] = to.base;
  op.source[1] = barrier.base;
  op.extra = list;
  op.immediate =
      std::bit_cast<int64_t>(CopyOffsets{static_cast<int32_t>(to.offset), static_cast<int32_t>(barrier.offset)});
}

} // namespace

void add_async_store_operations(OperationTable& table) {
  table.special("st.async.mbarrier::complete_tx::bytes*", &decode_async_store);
  table.special("red.async.mbarrier::complete_tx::bytes*", &decode_async_store);
}

} // namespace ptxrewrite::emulator
