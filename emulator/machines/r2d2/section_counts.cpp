#include "emulator/machines/r2d2/section_counts.h"

namespace ptxrewrite::emulator {
namespace {

InstructionCount& part_of(SectionCounts& counts, ir::SectionKind section) {
  switch (section) {
  case ir::SectionKind::r2d2_coefficient:
    return counts.coefficient;
  case ir::SectionKind::r2d2_thread:
    return counts.thread;
  case ir::SectionKind::r2d2_block:
    return counts.block;
  case ir::SectionKind::dac_affine:
    break;
  }
  return counts.rest;
}

} // namespace

InstructionCount SectionCounts::linear() const {
  InstructionCount sum = coefficient;
  sum += thread;
  sum += block;
  return sum;
}

InstructionCount SectionCounts::total() const {
  InstructionCount sum = linear();
  sum += rest;
  return sum;
}

SectionCounts& SectionCounts::operator+=(const SectionCounts& other) {
  coefficient += other.coefficient;
  thread += other.thread;
  block += other.block;
  rest += other.rest;
  return *this;
}

SectionCounts section_counts(const Counters& counters, const InstructionWeight& weight) {
  SectionCounts sum;
  for (const FunctionCounters& rows : counters.functions) {
    const ir::Function& function = *rows.source;
    InstructionCount* part = &sum.rest;
    for (ir::BlockId block : function.layout)
      for (ir::InstructionId id : function.instructions_in(block)) {
        const ir::InstructionKind kind = function.instructions[id].kind;
        if (kind == ir::InstructionKind::section_begin)
          part = &part_of(sum, static_cast<ir::SectionKind>(function.operands_of(id)[0].immediate));
        if (kind == ir::InstructionKind::section_end) part = &sum.rest;
        if (kind != ir::InstructionKind::real || id.index() >= rows.instructions.size()) continue;
        const uint64_t times = weight ? weight(function, id) : 1;
        const InstructionCounters& row = rows.instructions[id.index()];
        *part += {times * row.executions, times * row.lanes};
      }
  }
  return sum;
}

} // namespace ptxrewrite::emulator
