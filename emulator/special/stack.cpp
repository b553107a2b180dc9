// alloca, stacksave and stackrestore: local memory that a function allocates while it runs (PTX ISA 9.7.17).
//
// The lanes of an activation share one stack pointer: memory that one lane allocates is unused in the others. A restore
// takes effect only if all lanes of the warp execute it together; else the memory is released at the function's return.
#include "emulator/core/block.h"
#include "emulator/core/decode.h"
#include "emulator/core/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

// op.source[0]: bytes. op.immediate: alignment.
template <class T> const MicroOp* take_local_memory(Warp& warp, const MicroOp& op) {
  const T* sizes = warp.lanes<T>(op.source[0]);
  uint64_t bytes = 0;
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1)
    bytes = std::max<uint64_t>(bytes, sizes[std::countr_zero(lanes)]);
  const auto alignment = static_cast<uint64_t>(op.immediate);
  uint64_t& top = warp.activation->stack_pointer;
  const uint64_t start = (top + alignment - 1) / alignment * alignment;
  const uint64_t available = warp.block->local_stride;
  if (start > available || bytes > available - start)
    return warp.block->fail(warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)),
                            fmt::format("stack overflow: alloca of {} bytes; {} bytes of the thread's local memory are "
                                        "left",
                                        bytes, available - std::min(start, available)));
  top = start + bytes;
  detail::write_lanes<T>(warp, op.destination[0], warp.mask, [&](unsigned) { return static_cast<T>(start); });
  return &op + 1;
}

template <class T> const MicroOp* save_stack(Warp& warp, const MicroOp& op) {
  const auto top = static_cast<T>(warp.activation->stack_pointer);
  detail::write_lanes<T>(warp, op.destination[0], warp.mask, [&](unsigned) { return top; });
  return &op + 1;
}

template <class T> const MicroOp* restore_stack(Warp& warp, const MicroOp& op) {
  if (warp.mask != warp.live) return &op + 1;
  const T* saved = warp.lanes<T>(op.source[0]);
  uint64_t top = 0;
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1)
    top = std::max<uint64_t>(top, saved[std::countr_zero(lanes)]);
  warp.activation->stack_pointer = std::min(warp.activation->stack_pointer, top);
  return &op + 1;
}

void decode_alloca(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const unsigned bits = ir::bit_width(decoder.form().type());
  decoder.image().uses_stack = true;
  const LaneRef bytes = decoder.source(operands[decoder.top_level(1)], lanes_of_bits(bits));
  const LaneRef target = decoder.destination(operands[0], lanes_of_bits(bits));
  const size_t alignment = decoder.top_level(2);
  MicroOp& op = decoder.emit(bits == 32 ? &take_local_memory<uint32_t> : &take_local_memory<uint64_t>);
  op.source[0] = bytes;
  op.destination[0] = target;
  op.immediate = alignment < operands.size() ? std::max<int64_t>(operands[alignment].immediate, 1) : 8;
}

void decode_stacksave(Decoder& decoder, ir::InstructionId) {
  const unsigned bits = ir::bit_width(decoder.form().type());
  const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(bits));
  decoder.emit(bits == 32 ? &save_stack<uint32_t> : &save_stack<uint64_t>).destination[0] = target;
}

void decode_stackrestore(Decoder& decoder, ir::InstructionId) {
  const unsigned bits = ir::bit_width(decoder.form().type());
  const LaneRef saved = decoder.source(decoder.operands()[0], lanes_of_bits(bits));
  decoder.emit(bits == 32 ? &restore_stack<uint32_t> : &restore_stack<uint64_t>).source[0] = saved;
}

} // namespace

void add_stack_operations(OperationTable& table) {
  table.special("alloca*", &decode_alloca);
  table.special("stacksave*", &decode_stacksave);
  table.special("stackrestore*", &decode_stackrestore);
}

} // namespace ptxrewrite::emulator
