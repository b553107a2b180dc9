// The cost of making code of a whole kernel, for benchmarks.
#include "emulator/core/decode.h"
#include "emulator/generated/compiler.h"
#include "emulator/generated/direct_emitter.h"
#include "emulator/generated/plan_key.h"

#include <ctime>
#include <deque>
#include <set>

namespace ptxrewrite::emulator {
namespace generated {
namespace {

double processor_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// Each region entry that no earlier plan covers begins one, in the order of the code.
void measure_function(Compiler& compiler, FunctionCode& code, CodeTier tier, bool portable, CompileCost& cost) {
  std::set<uint32_t> instructions;
  std::set<uint32_t> covered;
  for (uint32_t index = 0; index < code.function.code.size(); ++index) {
    if (!code.is_region(index) || covered.contains(index)) continue;
    const double start = processor_milliseconds();
    Plan plan(code, index, {}, [&](uint32_t at) { return covered.contains(at); });
    plan.guess_addresses({}, {});
    (void)key_of(plan, true);
    const double planned = processor_milliseconds();
    cost.plan += planned - start;
    for (const auto& [first, piece] : plan.pieces)
      covered.insert(first);
    if (!plan.is_worthwhile()) continue;
    for (const auto& [first, piece] : plan.pieces)
      for (uint32_t at = first; at < piece.past; ++at)
        if (code.op(at).is_instruction) instructions.insert(code.op(at).instruction);
    cost.micro_operations += plan.size();
    if (tier == CodeTier::quick && !portable && has_direct_code()) {
      const std::vector<uint8_t> bytes = DirectEmitter(plan, true).emit();
      const double written = processor_milliseconds();
      (void)CodeMemory(bytes);
      cost.write += written - planned;
      cost.selection += processor_milliseconds() - written;
      cost.code_bytes += bytes.size();
      ++cost.functions;
      continue;
    }
    Compiler::Module module = compiler.write(plan, true, tier);
    cost.write += processor_milliseconds() - planned;
    if (module) compiler.measure(std::move(module), cost);
  }
  cost.instructions += instructions.size();
}

} // namespace
} // namespace generated

std::optional<CompileCost> compile_cost(KernelImage& image, CodeTier tier, bool portable) {
  generated::Compiler* compiler = generated::Compiler::get();
  if (!compiler) return std::nullopt;
  CompileCost cost;
  for (const auto& function : image.functions) {
    const double start = generated::processor_milliseconds();
    generated::FunctionCode code(image, *function, nullptr);
    cost.plan += generated::processor_milliseconds() - start;
    generated::measure_function(*compiler, code, tier, portable, cost);
  }
  return cost;
}

} // namespace ptxrewrite::emulator
