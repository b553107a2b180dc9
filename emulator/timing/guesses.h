// The figures of a machine that are guesses, for sensitivity studies.
#pragma once

#include "emulator/timing/model.h"
#include "ir/machine/figures/machine_fields.h"

#include <string_view>
#include <vector>

namespace ptxrewrite::timing {

// A machine and its launch costs.
struct TimedMachine {
  ir::Machine machine;
  LaunchCost launch;
};

struct Guess {
  std::string_view name; // "latency.l2"
  const ir::MachineField* field = nullptr;
};

// The machine's known figures that are guesses.
std::vector<Guess> guesses_of(const ir::Machine& machine);
// The value of the figure in the machine.
double value_of(const Guess& guess, const ir::Machine& machine);
// A copy of the machine in which one figure is multiplied by `factor`.
TimedMachine with_figure(const ir::Machine& machine, const Guess& guess, double factor);

} // namespace ptxrewrite::timing
