#include "tests/paper/weights.h"

#include <algorithm>

namespace ptxrewrite::tests {
namespace {

// Whether the instruction is in a thread or block part of R2D2's hardware form.
std::vector<bool> in_parts(const ir::Function& function) {
  std::vector<bool> inside(function.instructions.size());
  bool is_part = false;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      const ir::InstructionKind kind = function.instructions[id].kind;
      if (kind == ir::InstructionKind::section_begin) {
        const auto section = static_cast<ir::SectionKind>(function.operands_of(id)[0].immediate);
        is_part = section == ir::SectionKind::r2d2_thread || section == ir::SectionKind::r2d2_block;
      }
      if (kind == ir::InstructionKind::section_end) is_part = false;
      inside[id.index()] = is_part && kind == ir::InstructionKind::real;
    }
  return inside;
}

} // namespace

uint64_t Weights::operator()(const ir::Function& function, ir::InstructionId id) {
  auto [place, is_new] = known_.try_emplace(&function);
  if (is_new) place->second = weigh(function);
  return place->second[id.index()];
}

std::vector<uint64_t> Weights::weigh(const ir::Function& function) {
  const std::vector<bool> is_part = in_parts(function);
  std::vector<uint64_t> weights(function.instructions.size());
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      weights[id.index()] = lowered_(function, id);
      // `mad` in thread and block parts is the paper's mad.tr and mad.br (§3.2.2), which its machine issues as one.
      if (is_part[id.index()]) weights[id.index()] = std::min<uint64_t>(weights[id.index()], 1);
    }
  return weights;
}

Result<cuda::SessionResult> run_sample(const evaluate::LaunchInput& input, const ir::Module& module,
                                       const launch::Variants* variants, const cuda::EmulatorOptions& options) {
  std::unique_ptr<cuda::Device> device = cuda::make_emulator_device(options);
  cuda::SessionOptions session;
  session.variants = variants;
  Result<cuda::SessionResult> result = cuda::run_plan(input.plan, module, *device, session);
  if (result && result->failed_launch) return Error{result->runs.back().failure->message, {}};
  return result;
}

} // namespace ptxrewrite::tests
