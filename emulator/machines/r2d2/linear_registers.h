// R2D2's machine: what decoding and counting need to know of it (r2d2-isca23 section 4).
#pragma once

#include "emulator/core/program.h"

#include <span>

namespace ptxrewrite::emulator {

class Decoder;

// .r2d2.linear %lr0 = %tr1 + %br0;
void decode_linear_row(Decoder& decoder, std::span<const ir::Operand> operands);

// 64-bit lanes first + second, into `target` or a temporary.
LaneRef emit_sum(Decoder& decoder, LaneRef first, LaneRef second, LaneRef target = {});

// How often the machine executes an instruction of a section, in warps and in lanes.
struct SectionExecutions {
  uint64_t warps = 0;
  uint64_t lanes = 0;
};
struct LaunchFacts {
  uint64_t blocks = 0;
  uint64_t warps = 0;   // of a block
  uint64_t threads = 0; // of a block
  uint64_t multiprocessors = 0;
};
SectionExecutions section_executions(const DecodedFunction& function, ir::InstructionId instruction,
                                     ir::SectionKind section, const LaunchFacts& launch);

} // namespace ptxrewrite::emulator
