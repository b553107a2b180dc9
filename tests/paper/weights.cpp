#include "tests/paper/weights.h"

#include "ir/machine/lowering.h"
#include "ir/ssa.h"

#include <algorithm>

namespace ptxrewrite::tests {
namespace {

struct SectionInstruction {
  ir::InstructionId id;
  ir::SectionKind section;
};
std::vector<SectionInstruction> in_sections(const ir::Function& function) {
  std::vector<SectionInstruction> list;
  bool inside = false;
  ir::SectionKind section{};
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      const ir::InstructionKind kind = function.instructions[id].kind;
      if (kind == ir::InstructionKind::section_begin) {
        inside = true;
        section = static_cast<ir::SectionKind>(function.operands_of(id)[0].immediate);
      }
      if (kind == ir::InstructionKind::section_end) inside = false;
      if (kind == ir::InstructionKind::real && inside) list.push_back({id, section});
    }
  return list;
}

// SSA form keeps the numbers, and shows what register names hide.
ir::Lowering lowering_of(ir::Function copy, uint32_t capability) {
  if (!copy.is_ssa) (void)ir::construct_ssa(copy);
  return ir::lower(copy, capability);
}

} // namespace

uint64_t Weights::operator()(const ir::Function& function, ir::InstructionId id) {
  auto [place, is_new] = known_.try_emplace(&function);
  if (is_new) place->second = weigh(function);
  return place->second[id.index()];
}

std::vector<uint64_t> Weights::weigh(const ir::Function& function) const {
  // Sections run elsewhere than the body: nothing that they do spares the body anything, but what they are for.
  const std::vector<SectionInstruction> sections = in_sections(function);
  ir::Function body(function);
  for (const SectionInstruction& one : sections)
    body.remove(one.id);
  const ir::Lowering of_body = lowering_of(body, capability_), of_all = lowering_of(function, capability_);
  std::vector<uint64_t> weights(function.instructions.size());
  auto sum = [](const ir::InstructionCost& cost) { return uint64_t(cost.weight) + cost.uniform; };
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      weights[id.index()] = sum(of_body.cost(id));
  // How a linear register is aligned is known from the sections: loads that the assembler joins for that.
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, ir::Opcode::ld) && ir::is_shared(function.form_of(id).space) &&
          sum(of_all.cost(id)) == 0)
        weights[id.index()] = 0;
  // `mad` in thread and block parts is the paper's mad.tr and mad.br (§3.2.2), which its machine issues as one.
  for (const auto& [id, section] : sections) {
    weights[id.index()] = sum(of_all.cost(id));
    if (section != ir::SectionKind::r2d2_coefficient) weights[id.index()] = std::min<uint64_t>(weights[id.index()], 1);
  }
  return weights;
}

Result<cli::SessionResult> run_sample(const cli::LaunchInput& input, const ir::Module& module,
                                      const launch::Variants* variants, const cli::EmulatorOptions& options) {
  std::unique_ptr<cli::Device> device = cli::make_emulator_device(options);
  cli::SessionOptions session;
  session.variants = variants;
  Result<cli::SessionResult> result = cli::run_plan(input.plan, module, *device, session);
  if (result && result->failed_launch) return Error{result->runs.back().failure->message, {}};
  return result;
}

} // namespace ptxrewrite::tests
