// DAC's instructions: a warp takes entries from its queues before the instruction that uses them, and gives predicates
// to the affine warp. Those of the affine stream are decoded for their operands only; AffineWarp executes them.
#include "emulator/machines/dac/affine_decode.h"

#include "emulator/core/decode.h"
#include "emulator/machines/dac/affine_machine.h"

namespace ptxrewrite::emulator {
namespace {

const MicroOp* without_machine(Warp& warp, const MicroOp& op) {
  return warp.block->fail(warp, op, 0, "DAC's queues are there only for a kernel with an affine stream");
}

const MicroOp* dequeue_address(Warp& warp, const MicroOp& op) {
  const AffineBlock* block = affine_block(*warp.block);
  return block ? block->machine->dequeue_address(warp, op) : without_machine(warp, op);
}

const MicroOp* dequeue_predicate(Warp& warp, const MicroOp& op) {
  const AffineBlock* block = affine_block(*warp.block);
  return block ? block->machine->dequeue_predicate(warp, op) : without_machine(warp, op);
}

const MicroOp* give_predicate(Warp& warp, const MicroOp& op) {
  const AffineBlock* block = affine_block(*warp.block);
  return block ? block->machine->give_predicate(warp, op) : without_machine(warp, op);
}

uint32_t number_of(const Decoder& decoder) {
  for (const ir::Operand& operand : decoder.operands())
    if (operand.is(ir::OperandKind::integer)) return static_cast<uint32_t>(operand.immediate);
  return 0;
}

void decode_enqueue(Decoder& decoder, ir::InstructionId) {
  const size_t position = decoder.top_level(1);
  if (decoder.form().has(ir::Modifier::pred)) {
    const LaneRef lanes = decoder.source(decoder.operands()[position], lanes_of_bits(1));
    decoder.emit(&without_machine).source[0] = lanes;
    return;
  }
  const Decoder::Address address = decoder.address(position, true);
  MicroOp& op = decoder.emit(&without_machine);
  op.source[0] = address.base;
  op.immediate = address.offset;
}

void decode_dequeue(Decoder& decoder, ir::InstructionId) {
  const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(1));
  MicroOp& op = decoder.emit(&dequeue_predicate);
  op.extra = number_of(decoder);
  op.destination[0] = target;
}

void decode_take(Decoder& decoder, ir::InstructionId) {
  (void)decoder.destination(decoder.operands()[0], lanes_of_bits(1));
  decoder.emit(&without_machine);
}

void decode_give(Decoder& decoder, ir::InstructionId) {
  const LaneRef lanes = decoder.source(decoder.operands()[decoder.top_level(1)], lanes_of_bits(1));
  MicroOp& op = decoder.emit(&give_predicate);
  op.extra = number_of(decoder);
  op.source[0] = lanes;
}

void decode_condition(Decoder& decoder, ir::InstructionId) {
  decoder.emit(&without_machine);
}

class QueueDecoder final : public FormDecoder {
public:
  void before_instruction(Decoder& decoder) override;
};

void QueueDecoder::before_instruction(Decoder& decoder) {
  const ir::Function& function = decoder.function();
  auto dequeue = [&](ir::ValueId id, bool guarded) {
    const ir::Value& value = function.values[id];
    if (!ir::is_queue(value.register_class)) return;
    const bool is_address = value.register_class == ir::RegisterClass::queued_data ||
                            value.register_class == ir::RegisterClass::queued_address;
    MicroOp& op = decoder.emit_further(is_address ? &dequeue_address : &dequeue_predicate, guarded);
    op.extra = value.number;
    op.destination[0] = decoder.register_lanes(ir::Operand::value(id));
  };
  if (const ir::ValueId guard = function.instructions[decoder.instruction()].guard) dequeue(guard, false);
  for (const ir::Operand& operand : decoder.operands())
    if (operand.is(ir::OperandKind::value)) dequeue(operand.as_value(), true);
}

} // namespace

std::unique_ptr<FormDecoder> make_queue_decoder() {
  return std::make_unique<QueueDecoder>();
}

QueueAccess queue_access(const MicroOp& op) {
  if (op.handler == &dequeue_address) return QueueAccess::address;
  if (op.handler == &dequeue_predicate) return QueueAccess::predicate;
  if (op.handler == &give_predicate) return QueueAccess::give;
  return QueueAccess::none;
}

void add_affine_operations(OperationTable& table) {
  table.special("dac.enq*", &decode_enqueue);
  table.special("dac.deq*", &decode_dequeue);
  table.special("dac.take*", &decode_take);
  table.special("dac.give*", &decode_give);
  table.special("dac.condition*", &decode_condition);
}

} // namespace ptxrewrite::emulator
