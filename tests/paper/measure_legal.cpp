#include "emulator/core/emulator.h"
#include "evaluate/common/rewrite.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/figures/occupancy.h"
#include "tests/paper/measure.h"
#include "tests/paper/weights.h"

#include <algorithm>

namespace ptxrewrite::tests {
namespace {

// Static shared memory of a kernel; 0 if it cannot be emulated.
uint32_t static_shared(const ir::Module& module, std::string_view kernel) {
  emulator::DeviceMemory memory;
  auto program = emulator::Program::load(module, memory);
  if (!program) return 0;
  Result<uint64_t> bytes = (*program)->static_shared(kernel);
  return bytes ? static_cast<uint32_t>(*bytes) : 0;
}

LegalKernel::Figures figures_of(const ir::FiguresByFunction& figures, const ir::Module& module,
                                const std::string& kernel, const launch::Launch& launch, const ir::Machine& machine) {
  const auto found = figures.find(kernel);
  if (found == figures.end()) return {};
  const ir::MachineFigures& row = found->second;
  const ir::Occupancy resident = ir::occupancy(machine, {static_cast<uint32_t>(launch.block.count()), row.registers,
                                                         static_shared(module, kernel) + launch.dynamic_shared});
  return {row.instructions, row.registers, row.spilled_bytes, resident.warps};
}

uint64_t warp_instructions(const cuda::SessionResult& result, Weights& weights) {
  uint64_t sum = 0;
  for (const cuda::SessionRun& one : result.runs)
    sum += emulator::section_counts(one.counters, weights.function()).total().warps;
  return sum;
}

// Counts a run, unless no kernel was rewritten.
Status count_dynamic(const evaluate::LaunchInput& input, const ir::Module& rewritten, const launch::Variants& variants,
                     const ir::Machine& machine, LegalMeasurement& measured) {
  // A persistent grid is the number of blocks that this machine holds.
  const cuda::EmulatorOptions options{.resident_blocks = 0, .machine = &machine};
  Weights weights(machine);
  Result<cuda::SessionResult> before = run_sample(input, *input.module, nullptr, options);
  if (!before) return before.error();
  Result<cuda::SessionResult> after = run_sample(input, rewritten, &variants, options);
  if (!after) return after.error();
  measured.dynamic_before = warp_instructions(*before, weights);
  measured.dynamic_after = warp_instructions(*after, weights);
  measured.launches = after->runs.size();
  for (const cuda::SessionRun& one : after->runs)
    measured.launches_rewritten += one.entry != input.plan.launches[one.launch].kernel;
  return {};
}

} // namespace

double LegalMeasurement::dynamic_ratio() const {
  return dynamic_before ? static_cast<double>(dynamic_after) / static_cast<double>(dynamic_before) : 1;
}

bool LegalMeasurement::changed() const {
  return std::ranges::any_of(kernels, &LegalKernel::changed);
}

double LegalMeasurement::ratio() const {
  uint64_t before = 0, after = 0;
  for (const LegalKernel& kernel : kernels) {
    before += kernel.before.instructions;
    after += kernel.after.instructions;
  }
  return before ? static_cast<double>(after) / static_cast<double>(before) : 1;
}

Result<LegalMeasurement> measure_legal(const evaluate::LaunchInput& input, const std::string& name,
                                       const std::string& passes, const std::string& architecture) {
  LegalMeasurement measured;
  measured.sample = name;
  const ir::Machine& machine = ir::machine_for(ir::compute_capability_of(architecture));
  Result<evaluate::Rewritten> rewritten =
      evaluate::rewrite(*input.module, passes, transforms::OutputForm::legal, {.run_ptxas = true});
  if (!rewritten) return rewritten.error();
  Result<ir::FiguresByFunction> before = ir::machine_figures(input.module->source.text(), architecture);
  if (!before) return before.error();
  const ir::Module& module = rewritten->module ? *rewritten->module : *input.module;
  Result<ir::FiguresByFunction> after =
      rewritten->module ? ir::machine_figures(rewritten->text, architecture) : *before;
  if (!after) return after.error();
  Result<launch::Variants> variants = launch::Variants::of(module, nullptr);
  if (!variants) return variants.error();
  for (const launch::Launch& launch : input.plan.launches) {
    if (std::ranges::find(measured.kernels, launch.kernel, &LegalKernel::kernel) != measured.kernels.end()) continue;
    LegalKernel kernel{launch.kernel, {}, {}, false};
    kernel.before = figures_of(*before, *input.module, launch.kernel, launch, machine);
    const std::span<const launch::Variant> stand_ins = variants->of_kernel(launch.kernel);
    const std::string& entry = stand_ins.empty() ? launch.kernel : stand_ins.front().entry;
    kernel.after = figures_of(*after, module, entry, launch, machine);
    kernel.changed = !stand_ins.empty() || kernel.after != kernel.before;
    measured.kernels.push_back(std::move(kernel));
  }
  if (rewritten->module)
    if (Status status = count_dynamic(input, module, *variants, machine, measured); !status) return status.error();
  return measured;
}

} // namespace ptxrewrite::tests
