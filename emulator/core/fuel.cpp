#include "emulator/core/fuel.h"

#include "ir/flow/cfg.h"
#include "ir/flow/loops.h"
#include "support/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

struct SpunLoop {
  ir::InstructionId start; // the first instruction of the loop's header
  SourceRange first, last; // positions in the text
};

// Returns the innermost loop around an instruction as positions in the text, if there is one.
std::optional<SpunLoop> loop_around(const ir::Function& function, ir::InstructionId instruction) {
  if (instruction.index() >= function.instructions.size()) return std::nullopt;
  const ir::ControlFlow flow(function);
  const ir::DominatorTree dominators(function, flow);
  const ir::LoopForest loops(function, flow, dominators);
  const ir::BlockId block = function.instructions[instruction].block;
  if (!block || !flow.reachable(block)) return std::nullopt;
  const ir::LoopId loop = loops.innermost(block);
  if (!loop) return std::nullopt;
  std::optional<SpunLoop> spun;
  for (const ir::BlockId member : loops.loops()[loop].blocks)
    for (const ir::InstructionId id : function.instructions_in(member)) {
      const ir::Instruction& row = function.instructions[id];
      if (row.kind != ir::InstructionKind::real || row.range.empty()) continue;
      if (!spun) spun = SpunLoop{id, row.range, row.range};
      if (row.range.begin < spun->first.begin) {
        spun->start = id;
        spun->first = row.range;
      }
      if (row.range.end > spun->last.end) spun->last = row.range;
    }
  return spun;
}

ir::InstructionId instruction_of(const DecodedFunction& function, const MicroOp& op) {
  return ir::InstructionId(op.instruction - function.first_instruction);
}

} // namespace

// The fuel may end in a function that the loop calls; then the loop is found in a caller.
const MicroOp* run_out_of_fuel(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  const KernelImage& image = *block.image;
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.active | 1u << 31));
  MicroOp where = op;
  std::optional<SpunLoop> loop =
      loop_around(*image.function_of(op.instruction).source, instruction_of(image.function_of(op.instruction), op));
  for (const Activation* activation = warp.activation; !loop && activation && activation->caller;
       activation = activation->caller)
    for (const Meeting& meeting : warp.meetings) {
      if (!meeting.in_use || meeting.callee != activation) continue;
      const MicroOp& call = meeting.at[-1];
      const DecodedFunction& caller = image.function_of(call.instruction);
      loop = loop_around(*caller.source, instruction_of(caller, call));
      if (loop) where = call;
      break;
    }
  std::string text = fmt::format("out of fuel: the block has executed the {} warp instructions that it may (--fuel "
                                 "allows more)",
                                 block.launch->request->fuel);
  if (loop) {
    const SourceFile& source = image.module->source;
    const uint32_t first = source.locate(loop->first.begin).line, last = source.locate(loop->last.begin).line;
    text += first == last ? fmt::format("; warp {} is in the loop of line {}", warp.index, first)
                          : fmt::format("; warp {} is in the loop of lines {} to {}", warp.index, first, last);
    where.instruction = image.function_of(where.instruction).first_instruction + loop->start.index();
  }
  return block.fail(warp, where, lane, std::move(text), FailureKind::out_of_fuel);
}

LaunchFuel::LaunchFuel(const LaunchRequest& request)
    : limit_(saturating_multiply(std::min(request.fuel, uint64_t(1) << 56), launch_fuel_factor)) {}

} // namespace ptxrewrite::emulator
