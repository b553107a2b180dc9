// Machine instructions of a run: the weights of PTX instructions, and runs of samples.
#pragma once

#include "emulator/machines/r2d2/section_counts.h"
#include "evaluate/launches/launch_input.h"
#include "evaluate/launches/machine_weights.h"
#include "ir/machine/figures/machine.h"

#include <map>
#include <vector>

namespace ptxrewrite::tests {

// Machine instructions of PTX instructions, for any function of the modules. Sections of a hardware form are lowered
// together with the body: divergence in the body and the alignment of its addresses depend on the results of the
// sections.
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

// Runs the plan. A fault of a kernel is also an error.
Result<cuda::SessionResult> run_sample(const evaluate::LaunchInput& input, const ir::Module& module,
                                       const launch::Variants* variants, const cuda::EmulatorOptions& options);

} // namespace ptxrewrite::tests
