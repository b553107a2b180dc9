// R2D2's machine (r2d2-isca23 section 4): coefficient, thread-index, block-index and linear registers.
//
// The paper's hardware computes the first once per SM and launch, the second in the first block of each SM, the third
// in the first warp of each block, and adds thread and block parts in linear registers. They are pure arithmetic on
// values that every warp can know, so here each warp computes them for itself when it starts, uncounted; what the
// machine would have executed is worked out from the launch: see section_executions.
#include "emulator/machines/r2d2/linear_registers.h"

#include "emulator/core/decode.h"
#include "emulator/core/resize.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

const MicroOp* add_lanes(Warp& warp, const MicroOp& op) {
  const uint64_t* first = warp.lanes<uint64_t>(op.source[0]);
  const uint64_t* second = warp.lanes<uint64_t>(op.source[1]);
  const auto offset = static_cast<uint64_t>(op.immediate);
  detail::write_lanes<uint64_t>(warp, op.destination[0], warp.mask,
                                [&](unsigned lane) { return first[lane] + second[lane] + offset; });
  return &op + 1;
}

// r2d2.mov d, a [, b] [, immediate]: the sum, cut to the type.
void decode_mov(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  LaneRef sources[2] = {decoder.constant(0, 64), decoder.constant(0, 64)};
  int64_t offset = 0;
  unsigned registers = 0;
  for (unsigned i = 1; i < decoder.top_level_count(); ++i) {
    const ir::Operand& operand = operands[decoder.top_level(i)];
    if (operand.is(ir::OperandKind::integer))
      offset += operand.immediate;
    else if (registers < 2)
      sources[registers++] = decoder.source(operand, lanes_of_bits(64));
  }
  const LaneRef sum = decoder.temporary(64);
  MicroOp& add = decoder.emit_further(&add_lanes, true);
  add.source[0] = sources[0];
  add.source[1] = sources[1];
  add.immediate = offset;
  add.destination[0] = sum;
  const unsigned bits = lane_bits(decoder.form().type());
  const LaneRef target = decoder.destination(operands[0], lanes_of_bits(bits));
  const Handler handler = bits == 64 ? copy_handler(64) : resize_handler(64, bits, false);
  MicroOp& op = decoder.emit(handler);
  op.source[0] = sum;
  op.destination[0] = target;
}

} // namespace

LaneRef emit_sum(Decoder& decoder, LaneRef first, LaneRef second, LaneRef target) {
  if (!target) target = decoder.temporary(64);
  MicroOp& op = decoder.emit_further(&add_lanes, false);
  op.source[0] = first;
  op.source[1] = second;
  op.destination[0] = target;
  return target;
}

void decode_linear_row(Decoder& decoder, std::span<const ir::Operand> operands) {
  if (operands.size() != 3) return decoder.unsupported("a linear row of another shape than %lr = %tr + %br");
  const LaneRef first = decoder.source(operands[1], lanes_of_bits(64));
  const LaneRef second = decoder.source(operands[2], lanes_of_bits(64));
  emit_sum(decoder, first, second, decoder.register_lanes(operands[0]));
}

SectionExecutions section_executions(const DecodedFunction& function, ir::InstructionId instruction,
                                     ir::SectionKind section, const LaunchFacts& launch) {
  const uint64_t machines = std::min(launch.blocks, launch.multiprocessors);
  switch (section) {
  case ir::SectionKind::r2d2_coefficient:
    return {machines, machines};
  case ir::SectionKind::r2d2_thread:
    return {machines * launch.warps, machines * launch.threads};
  default:
    break;
  }
  // Rows of the block part with the same operation and the same index register are lanes of one warp instruction, up to
  // 16 of them (section 4.2): the first of each sixteen stands for them all.
  uint64_t same_before = 0;
  auto key = [&](ir::InstructionId id) {
    std::span<const ir::Operand> operands = function.source->operands_of(id);
    const ir::Operand index = operands.size() > 1 ? operands[1] : ir::Operand();
    return std::pair(function.source->instructions[id].form, index);
  };
  for (uint32_t i = 0; i < function.section_of.size(); ++i) {
    const ir::InstructionId id(i);
    if (id == instruction) break;
    if (function.section_of[i] == function.section_of[instruction.index()] && key(id) == key(instruction))
      ++same_before;
  }
  return {same_before % 16 == 0 ? launch.blocks : 0, launch.blocks};
}

void add_linear_register_operations(OperationTable& table) {
  table.special("r2d2.mov*", &decode_mov);
}

} // namespace ptxrewrite::emulator
