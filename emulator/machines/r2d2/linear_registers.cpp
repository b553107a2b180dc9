// R2D2's machine (r2d2-isca23 section 4): coefficient, thread-index, block-index and linear registers.
//
// The paper's hardware computes the first once per SM and launch, the second in the first block of each SM, the third
// in the first warp of each block, and adds thread and block parts in linear registers. They are pure arithmetic on
// values available in every warp, so here each warp computes them itself when it starts, uncounted; the instructions of
// the machine are computed from the launch.
#include "emulator/core/decode.h"
#include "emulator/core/machine.h"
#include "emulator/core/resize.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

// r2d2.mov d, a [, b] [, immediate]: the sum, truncated to the type.
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
  const LaneRef sum = decoder.emit_sum({sources[0], sources[1], offset, true});
  const unsigned bits = lane_bits(decoder.form().type());
  const LaneRef target = decoder.destination(operands[0], lanes_of_bits(bits));
  const Handler handler = bits == 64 ? copy_handler(64) : resize_handler(64, bits, false);
  MicroOp& op = decoder.emit(handler);
  op.source[0] = sum;
  op.destination[0] = target;
}

// .r2d2.linear %lr0 = %tr1 + %br0;
class RowDecoder final : public FormDecoder {
public:
  void line(Decoder& decoder) override {
    const ir::Function& function = decoder.function();
    if (function.instructions[decoder.instruction()].kind != ir::InstructionKind::linear_row) return;
    const std::span<const ir::Operand> operands = function.operands_of(decoder.instruction());
    if (operands.size() != 3) return decoder.unsupported("a linear row of another shape than %lr = %tr + %br");
    const LaneRef first = decoder.source(operands[1], lanes_of_bits(64));
    const LaneRef second = decoder.source(operands[2], lanes_of_bits(64));
    decoder.emit_sum({first, second, 0, false, decoder.register_lanes(operands[0])});
  }
};

SectionExecutions block_part_executions(const DecodedFunction& function, ir::InstructionId instruction,
                                        const LaunchFacts& launch) {
  // Rows of the block part with the same operation and the same index register are lanes of one warp instruction, up to
  // 16 of them (section 4.2): the first of each sixteen counts for all.
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

class R2d2Model final : public MachineModel {
public:
  std::string_view name() const override { return "r2d2"; }
  std::string_view title() const override { return "R2D2's machine"; }
  void add_operations(OperationTable& table) const override { table.special("r2d2.mov*", &decode_mov); }
  std::unique_ptr<FormDecoder> form_decoder() const override { return std::make_unique<RowDecoder>(); }

  std::optional<SectionExecutions> section_executions(const DecodedFunction& function, ir::InstructionId instruction,
                                                      ir::SectionKind section,
                                                      const LaunchFacts& launch) const override {
    const uint64_t machines = std::min(launch.blocks, launch.multiprocessors);
    switch (section) {
    case ir::SectionKind::r2d2_coefficient:
      return SectionExecutions{machines, machines};
    case ir::SectionKind::r2d2_thread:
      return SectionExecutions{machines * launch.warps, machines * launch.threads};
    case ir::SectionKind::r2d2_block:
      return block_part_executions(function, instruction, launch);
    case ir::SectionKind::dac_affine:
      break;
    }
    return std::nullopt;
  }
};

} // namespace

const MachineModel& r2d2_machine() {
  static const R2d2Model model;
  return model;
}

} // namespace ptxrewrite::emulator
