// Machine instructions of a run: what weighs each PTX instruction, and runs of samples.
#pragma once

#include "emulator/machines/r2d2/section_counts.h"
#include "evaluate/launches/launch_input.h"
#include "evaluate/launches/machine_weights.h"
#include "ir/machine/figures/machine.h"

#include <map>
#include <vector>

namespace ptxrewrite::tests {

// Machine instructions of PTX instructions, of any function of the modules at hand. Sections of a hardware form are
// lowered together with the body: which lanes part in the body, and how its addresses are aligned, depends on what the
// sections compute.
class Weights {
public:
  explicit Weights(const ir::Machine& machine) : lowered_(machine) {}

  uint64_t operator()(const ir::Function& function, ir::InstructionId id);
  emulator::InstructionWeight function() {
    return [this](const ir::Function& function, ir::InstructionId id) { return (*this)(function, id); };
  }

private:
  std::vector<uint64_t> weigh(const ir::Function& function);

  evaluate::MachineWeights lowered_;
  std::map<const ir::Function*, std::vector<uint64_t>> known_;
};

// Runs the plan. A kernel's fault is an error, too.
Result<cuda::SessionResult> run_sample(const evaluate::LaunchInput& input, const ir::Module& module,
                                       const launch::Variants* variants, const cuda::EmulatorOptions& options);

} // namespace ptxrewrite::tests
